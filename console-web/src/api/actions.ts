/** Made of docs/openapi.json by `npm run generate`: do not edit. */

/** What can be done, and the kind of thing that it is done to. */
export const ACTIONS = {
  sign_in: "user",
  finish_single_sign_on: "user",
  sign_out: "user",
  change_password: "user",
  end_session: "user",
  create_my_token: "token",
  revoke_my_token: "token",
  create_app: "app",
  edit_app: "app",
  delete_app: "app",
  register_handlers: "app",
  create_key: "key",
  rotate_keys: "key",
  revoke_key: "key",
  put_calendar: "calendar",
  delete_calendar: "calendar",
  edit_executor: "executor",
  create_role: "role",
  edit_role: "role",
  delete_role: "role",
  create_task: "task",
  apply_tasks: "task",
  edit_task: "task",
  delete_task: "task",
  start_task: "task",
  stop_task: "task",
  pause_task: "task",
  run_task: "task",
  skip_fire: "task",
  unskip_fire: "task",
  create_backfill: "task",
  cancel_backfill: "task",
  cancel_run: "task_log",
  create_tenant: "tenant",
  edit_tenant: "tenant",
  delete_tenant: "tenant",
  edit_quotas: "tenant",
  add_window: "maintenance_window",
  drop_window: "maintenance_window",
  revoke_token: "token",
  create_user: "user",
  edit_user: "user",
  delete_user: "user",
  reset_password: "user",
  end_user_sessions: "user",
  create_grant: "user",
  delete_grant: "user",
} as const;

/** One of them; a newer node may know more. */
export type Action = keyof typeof ACTIONS;

/** What is done to things of a kind. */
export type ActionOn<Target extends string> = { [Key in Action]: (typeof ACTIONS)[Key] extends Target ? Key : never }[Action];

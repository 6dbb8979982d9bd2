/** The actions that a user administrator has on an account. */
import { Button, Form, Input, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { client, ifMatch, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { heldIn } from "../../lib/access";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { FormModal } from "../../parts/FormModal";
import { Secret } from "../../parts/Secret";
import { useAction } from "../../parts/useAction";
import { useExplained } from "../../parts/useExplained";

type User = Schema<"User">;

export function UserActions({ user }: { user: User }) {
  const { me } = useSession();
  const held = heldIn(me.access, { tenantId: user.tenant_id ?? null });
  return (
    <>
      {held.has("users.edit") && <Edits user={user} />}
      {held.has("users.delete") && <Delete user={user} />}
    </>
  );
}

function Edits({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const [editing, setEditing] = useState(false);
  const params = { path: { id: user.id }, header: ifMatch(user.revision) };
  return (
    <>
      <Button onClick={() => setEditing(true)}>{common.t("edit")}</Button>
      <Disable user={user} />
      <Reset user={user} />
      <EndSessions user={user} />
      <FormModal<{ display_name: string }, unknown>
        open={editing}
        title={t("users.edit_title", { name: user.name })}
        submitLabel={common.t("save")}
        initial={{ display_name: user.display_name }}
        submit={(body) => client.PATCH("/users/{id}", { params, body })}
        onClose={() => setEditing(false)}
      >
        <Form.Item name="display_name" label={t("users.display_name")}>
          <Input maxLength={100} autoComplete="off" />
        </Form.Item>
      </FormModal>
    </>
  );
}

function Disable({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const { run } = useAction();
  const failed = useExplained();
  const { name, disabled } = user;
  // Whatever else has changed meanwhile, a login say: who is to be kept out is kept out.
  const params = { path: { id: user.id } };
  return (
    <Confirm
      danger={false}
      label={t(disabled ? "users.enable" : "users.disable")}
      question={t(disabled ? "users.enable_question" : "users.disable_question", { name })}
      consequence={!disabled && t("users.disable_text")}
      onConfirm={() => run(() => client.PATCH("/users/{id}", { params, body: { disabled: !disabled } }), { failed })}
    />
  );
}

function Reset({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const { run } = useAction();
  const failed = useExplained();
  const [password, setPassword] = useState<string>();
  const { id, name } = user;
  const reset = () =>
    run(() => client.POST("/users/{id}/password", { params: { path: { id } } }), {
      failed,
      then: ({ data }) => setPassword(data?.password ?? undefined),
    });
  return (
    <>
      <Confirm label={t("users.reset")} question={t("users.reset_question", { name })} consequence={t("users.reset_text")} onConfirm={reset} button={{ danger: false }} />
      <Secret title={t("users.password_title", { name })} value={password} onClose={() => setPassword(undefined)}>
        <Typography.Text>{t("users.password_text")}</Typography.Text>
      </Secret>
    </>
  );
}

function EndSessions({ user: { id, name } }: { user: User }) {
  const { t } = useTranslation("people");
  const { run } = useAction();
  const failed = useExplained();
  return (
    <Confirm
      danger={false}
      label={t("users.end_sessions")}
      question={t("users.end_sessions_question", { name })}
      consequence={t("users.end_sessions_text")}
      onConfirm={() => run(() => client.DELETE("/users/{id}/sessions", { params: { path: { id } } }), { failed })}
    />
  );
}

function Delete({ user: { id, name } }: { user: User }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { run } = useAction();
  const failed = useExplained();
  const link = useLink();
  const navigate = useNavigate();
  const remove = async () => {
    await client.DELETE("/users/{id}", { params: { path: { id } } });
    // Before this page asks for a user who no longer exists.
    await navigate(link("/users"));
  };
  return (
    <Confirm
      label={common.t("delete")}
      question={t("users.delete_question", { name })}
      consequence={t("users.delete_text")}
      typed={name}
      onConfirm={() => run(remove, { failed })}
    />
  );
}

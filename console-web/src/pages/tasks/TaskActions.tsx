/** Everything that one may do with one task: as buttons, or, where there is little room, as a menu. */
import { CaretRightOutlined, MoreOutlined } from "@ant-design/icons";
import { Button, Dropdown, type MenuProps } from "antd";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import type { Schema } from "../../api/client";
import type { Permission } from "../../api/permissions";
import { useLink } from "../../lib/tenant";
import { useFollowByKey, type MenuInfo } from "../../parts/useFollowByKey";
import { BackfillDialog } from "./BackfillDialog";
import { PauseDialog } from "./PauseDialog";
import { RunNow } from "./RunNow";
import { DeleteDialog, StartDialog, StopDialog } from "./StateDialogs";
import { useTaskMay } from "./useTaskMay";

type Dialog = "run" | "start" | "stop" | "pause" | "backfill" | "delete";

/** What opens a dialog, in the order of use, and what it asks for. */
const DIALOGS: readonly { dialog: Dialog; needs: readonly Permission[] }[] = [
  { dialog: "run", needs: ["tasks.run"] },
  { dialog: "start", needs: ["tasks.start"] },
  { dialog: "stop", needs: ["tasks.stop"] },
  { dialog: "pause", needs: ["tasks.pause"] },
  { dialog: "backfill", needs: ["backfills.create", "backfills.read"] },
  { dialog: "delete", needs: ["tasks.delete"] },
];

/** Whether it would change anything in the task's state. */
function isOfUse(dialog: Dialog, { state, schedule }: Schema<"Task">): boolean {
  if (dialog === "start") return state !== "started";
  if (dialog === "stop") return state !== "stopped";
  if (dialog === "pause") return state === "started";
  if (dialog === "backfill") return schedule === "cron" || schedule === "fixed_rate";
  return true;
}

interface Properties {
  task: Schema<"Task">;
  /** One button with a menu. */
  compact?: boolean;
}

export function TaskActions({ task, compact = false }: Properties) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const link = useLink();
  const navigate = useNavigate();
  const allowed = useTaskMay(task.tenant, task.app);
  const [open, setOpen] = useState<Dialog>();
  const shown = DIALOGS.filter(({ dialog, needs }) => needs.some(allowed) && isOfUse(dialog, task)).map(({ dialog }) => dialog);
  const label = (dialog: Dialog) => (dialog === "delete" ? common("delete") : t(`${dialog}.button`));
  const edit = allowed("tasks.edit") ? link(`/tasks/${task.id}/edit`) : undefined;
  const copy = allowed("tasks.create") ? link("/tasks/new", { from: task.id }) : undefined;
  // The entry goes with the menu: the dialog gives the focus back to the menu's button. The key must not press what the dialog shows.
  const menuButton = useRef<HTMLButtonElement>(null);
  const fromMenu = (dialog: Dialog) => ({ domEvent }: MenuInfo) => {
    domEvent.preventDefault();
    menuButton.current?.focus();
    setOpen(dialog);
  };
  // What is used seldom, or is dangerous, stands in the menu.
  const inMenu = compact ? shown : shown.filter((dialog) => dialog === "backfill" || dialog === "delete");
  const byKey = useFollowByKey();
  const items: MenuProps["items"] = [
    ...(compact && edit !== undefined ? [{ key: "edit", label: <Link to={edit}>{common("edit")}</Link>, onClick: byKey(edit) }] : []),
    ...(copy !== undefined ? [{ key: "copy", label: <Link to={copy}>{t("copy_task")}</Link>, onClick: byKey(copy) }] : []),
    ...inMenu.map((dialog) => ({ key: dialog, label: label(dialog), danger: dialog === "delete", onClick: fromMenu(dialog) })),
  ];
  return (
    <>
      {!compact &&
        shown
          .filter((dialog) => !inMenu.includes(dialog))
          .map((dialog) => (
            <Button key={dialog} icon={dialog === "run" ? <CaretRightOutlined aria-hidden /> : undefined} onClick={() => setOpen(dialog)}>
              {label(dialog)}
            </Button>
          ))}
      {!compact && edit !== undefined && (
        <Button type="primary" onClick={() => void navigate(edit)}>
          {common("edit")}
        </Button>
      )}
      {items.length > 0 && (
        // Opened by keyboard, it is operated with the arrow keys.
        // eslint-disable-next-line jsx-a11y/no-autofocus -- it was opened to be used
        <Dropdown trigger={["click"]} menu={{ items }} autoFocus>
          <Button ref={menuButton} type={compact ? "text" : "default"} size={compact ? "small" : "middle"} icon={<MoreOutlined aria-hidden />} aria-label={t("actions_of", { name: task.name })} />
        </Dropdown>
      )}
      <Dialogs task={task} open={open} close={() => setOpen(undefined)} onDeleted={compact ? undefined : () => void navigate(link("/tasks"))} />
    </>
  );
}

interface DialogsProperties {
  task: Schema<"Task">;
  open: Dialog | undefined;
  close: () => void;
  onDeleted: (() => void) | undefined;
}

function Dialogs({ task, open, close, onDeleted }: DialogsProperties) {
  // A list has a row for each task: nothing is made for those whose menu was never used.
  const [used, setUsed] = useState<ReadonlySet<Dialog>>(new Set());
  if (open !== undefined && !used.has(open)) setUsed(new Set([...used, open]));
  const of = (dialog: Dialog) => ({ task, open: open === dialog, onClose: close });
  return (
    <>
      {used.has("run") && <RunNow {...of("run")} />}
      {used.has("start") && <StartDialog {...of("start")} />}
      {used.has("stop") && <StopDialog {...of("stop")} />}
      {used.has("pause") && <PauseDialog {...of("pause")} />}
      {used.has("backfill") && <BackfillDialog {...of("backfill")} />}
      {used.has("delete") && <DeleteDialog {...of("delete")} onDeleted={onDeleted} />}
    </>
  );
}

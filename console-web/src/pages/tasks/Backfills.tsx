/** The backfills of a task, newest first: how far they are, and how to end them. */
import { Button, Flex, Progress, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api, client, type Schema } from "../../api/client";
import { progressOf } from "../../lib/backfill";
import type { Tone } from "../../lib/states";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { BY_BEFORE, itemsOf } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";
import { useAction } from "../../parts/useAction";

const TONES: Record<string, Tone> = { open: "open", done: "good", cancelled: "idle" };

export function Backfills({ task, mayCancel }: { task: Schema<"Task">; mayCancel: boolean }) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const pages = $api.useInfiniteQuery("get", "/tasks/{id}/backfills", { params: { path: { id: task.id }, query: { limit: 20 } } }, BY_BEFORE);
  const backfills = itemsOf(pages);
  return (
    <section aria-labelledby="backfills">
      <Typography.Title level={2} id="backfills" className="section-title">
        {t("backfill.earlier")}
      </Typography.Title>
      <Failure error={pages.error} again={() => void pages.refetch()} />
      {backfills.length === 0 && !pages.isPending && <Typography.Text type="secondary">{t("backfill.none")}</Typography.Text>}
      <ul className="plain-list">
        {backfills.map((backfill) => (
          <li key={backfill.id} className="plain-item">
            <Backfill task={task} backfill={backfill} mayCancel={mayCancel} />
          </li>
        ))}
      </ul>
      {pages.hasNextPage && (
        <Button loading={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {common("more")}
        </Button>
      )}
    </section>
  );
}

function Backfill({ task, backfill, mayCancel }: { task: Schema<"Task">; backfill: Schema<"Backfill">; mayCancel: boolean }) {
  const { t } = useTranslation("tasks");
  const { run } = useAction();
  const cancel = () =>
    run(() => client.DELETE("/tasks/{id}/backfills/{backfill}", { params: { path: { id: task.id, backfill: backfill.id } } }), {
      done: t("backfill.cancelled"),
    });
  const { status } = backfill;
  // A newer node may know more.
  const isKnown = ["open", "done", "cancelled"].includes(status);
  return (
    <Flex vertical gap={4}>
      <Flex gap="small" align="center" justify="space-between" wrap>
        <span>
          <Moment at={backfill.from} taskZone={task.time_zone} /> – <Moment at={backfill.until} taskZone={task.time_zone} />
        </span>
        <Word tone={TONES[status] ?? "idle"}>{isKnown ? t(`backfill.status.${status}`) : status}</Word>
      </Flex>
      {status === "open" && <Progress percent={progressOf(backfill)} size="small" aria-label={t("backfill.progress")} />}
      <Flex gap="small" align="center" justify="space-between" wrap>
        <Typography.Text type="secondary">
          {t("backfill.figures", { written: backfill.written, existing: backfill.existing, count: backfill.max_concurrent })}
        </Typography.Text>
        {status === "open" && mayCancel && (
          <Confirm
            label={t("backfill.cancel")}
            question={t("backfill.cancel_question")}
            consequence={t("backfill.cancel_consequence")}
            onConfirm={cancel}
            button={{ size: "small" }}
          />
        )}
      </Flex>
    </Flex>
  );
}

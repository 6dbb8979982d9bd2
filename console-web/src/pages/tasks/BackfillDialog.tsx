/** Makes up for the fires of a range that has passed, and shows what became of earlier backfills. */
import { Alert, Button, Checkbox, Drawer, Flex, Form, InputNumber, Typography } from "antd";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client, Problem, type FieldError, type Schema } from "../../api/client";
import { ASKS_ABOVE, countFires, PAGE, type Count } from "../../lib/backfill";
import { clusterNow } from "../../lib/now";
import { ConfirmModal } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { useAction } from "../../parts/useAction";
import { Backfills } from "./Backfills";
import { errorOf } from "./errorOf";
import { InstantInput } from "./InstantInput";
import { ParamsInput } from "./ParamsInput";
import type { DialogProperties } from "./PauseDialog";
import { useSettled } from "../../parts/useSettled";
import { useTaskMay } from "./useTaskMay";

const DAY_MS = 86_400_000;
const SETTLE_MS = 300;

interface Wish {
  from: number;
  until: number;
  max_concurrent: number;
  isOther: boolean;
  params: string;
}

export function BackfillDialog({ task, open, onClose }: DialogProperties) {
  const { t } = useTranslation("tasks");
  const allowed = useTaskMay(task.tenant, task.app);
  const isPossible = task.schedule === "cron" || task.schedule === "fixed_rate";
  return (
    <Drawer open={open} onClose={onClose} title={t("backfill.title", { name: task.name })} size={620} destroyOnHidden>
      <Flex vertical gap="middle">
        <Typography.Text>{t("backfill.what")}</Typography.Text>
        {!isPossible && <Alert type="info" showIcon title={t("backfill.only_scheduled")} />}
        {isPossible && allowed("backfills.create") && <BackfillForm task={task} />}
        {allowed("backfills.read") && <Backfills task={task} mayCancel={allowed("backfills.cancel")} />}
      </Flex>
    </Drawer>
  );
}

function wishOf(task: Schema<"Task">): Wish {
  // The day until now, in whole minutes.
  const until = Math.floor(clusterNow() / 60_000) * 60_000;
  return { from: until - DAY_MS, until, max_concurrent: 1, isOther: false, params: task.params };
}

function BackfillForm({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation("tasks");
  const { busy, run } = useAction();
  const [wish, setWish] = useState(() => wishOf(task));
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [isAsking, setAsking] = useState(false);
  const { data: count, error } = useCount(task, wish);
  const words = useCountWords();
  const change = (part: Partial<Wish>) => setWish((before) => ({ ...before, ...part }));
  const create = async () => {
    setErrors([]);
    const { from, until, max_concurrent, isOther, params } = wish;
    const body = { from, until, max_concurrent, ...(isOther ? { params } : {}) };
    return run(() => client.POST("/tasks/{id}/backfills", { params: { path: { id: task.id } }, body }), {
      done: t("backfill.done"),
      failed: (error) => {
        if (!(error instanceof Problem) || !error.errors.some(({ field }) => Object.hasOwn(wish, field))) return false;
        setErrors(error.errors);
        return true;
      },
    });
  };
  // What could not be counted may be many.
  const isMuch = count === undefined || count.fires > ASKS_ABOVE;
  const begin = () => (isMuch ? setAsking(true) : void create());
  const isPossible = isRange(wish) && (count !== undefined || error !== null);
  return (
    <Form layout="vertical" onFinish={begin}>
      <Form.Item label={t("backfill.from")} htmlFor="backfill-from" {...errorOf(errors, "from")}>
        <InstantInput id="backfill-from" zone={task.time_zone} value={wish.from} onChange={(from) => change({ from })} />
      </Form.Item>
      <Form.Item label={t("backfill.until")} extra={t("backfill.until_help")} htmlFor="backfill-until" {...errorOf(errors, "until")}>
        <InstantInput id="backfill-until" zone={task.time_zone} value={wish.until} onChange={(until) => change({ until })} />
      </Form.Item>
      <Counted wish={wish} count={count} error={error} />
      <Form.Item label={t("backfill.max_concurrent")} extra={t("backfill.max_concurrent_help")} htmlFor="backfill-most" {...errorOf(errors, "max_concurrent")}>
        <InputNumber id="backfill-most" min={1} max={1000} precision={0} value={wish.max_concurrent} onChange={(most) => change({ max_concurrent: most ?? 1 })} />
      </Form.Item>
      <Form.Item {...errorOf(errors, "params")}>
        <Checkbox checked={wish.isOther} onChange={(event) => change({ isOther: event.target.checked })}>
          {t("run.other_params")}
        </Checkbox>
        {wish.isOther && <ParamsInput label={t("fields.label.params")} value={wish.params} onChange={(params) => change({ params })} />}
      </Form.Item>
      <Button type="primary" htmlType="submit" loading={busy} disabled={!isPossible}>
        {t("backfill.button")}
      </Button>
      <ConfirmModal
        open={isAsking}
        onClose={() => setAsking(false)}
        label={t("backfill.button")}
        question={t("backfill.question", { name: task.name })}
        consequence={
          <>
            <Typography.Text strong>{count === undefined ? t("backfill.uncounted") : words(count)}</Typography.Text>
            <Typography.Text>{t("backfill.consequence", { count: wish.max_concurrent })}</Typography.Text>
          </>
        }
        danger={false}
        onConfirm={create}
      />
    </Form>
  );
}

/** How many fires lie in the range, as the definition names them now; `undefined` while they are counted. */
function useCount(task: Schema<"Task">, { from, until }: Wish) {
  const asked = useSettled(`${from} ${until}`, SETTLE_MS) === `${from} ${until}`;
  const read = async (after: number, signal: AbortSignal) => {
    const { data } = await client.GET("/tasks/{id}/preview", { params: { path: { id: task.id }, query: { after, count: PAGE } }, signal });
    return data?.items ?? [];
  };
  return useQuery({
    queryKey: ["backfill count", task.id, task.revision, from, until],
    queryFn: ({ signal }) => countFires((after) => read(after, signal), from, until),
    enabled: asked && isRange({ from, until }),
    staleTime: 60_000,
  });
}

function isRange({ from, until }: Pick<Wish, "from" | "until">): boolean {
  return from > 0 && until > from;
}

function useCountWords() {
  const { t } = useTranslation("tasks");
  return ({ fires, isAll, about }: Count) => {
    if (fires === 0) return t("backfill.no_fires");
    return isAll ? t("backfill.fires", { count: fires, n: written(fires) }) : t("backfill.fires_about", { n: written(fires), about: written(about) });
  };
}

function written(count: number): string {
  return count.toLocaleString("en-US");
}

function Counted({ wish, count, error }: { wish: Wish; count: Count | undefined; error: unknown }) {
  const { t } = useTranslation("tasks");
  const words = useCountWords();
  if (wish.from === 0 || wish.until === 0) return null;
  if (!isRange(wish)) return <Alert type="warning" showIcon title={t("backfill.backwards")} className="form-note" />;
  if (error !== null) return <Failure error={error} />;
  const isMuch = count === undefined || count.fires === 0 || count.fires > ASKS_ABOVE;
  return <Alert type={isMuch && count !== undefined ? "warning" : "info"} showIcon role="status" className="form-note" title={count === undefined ? t("backfill.counting") : words(count)} />;
}

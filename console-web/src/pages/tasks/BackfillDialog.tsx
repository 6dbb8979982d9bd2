/** Makes up for the fires of a range that has passed, and shows what became of earlier backfills. */
import { Alert, Button, Checkbox, Drawer, Flex, Form, InputNumber, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, client, Problem, type FieldError, type Schema } from "../../api/client";
import { countFires, MAX_COUNTED } from "../../lib/backfill";
import { clusterNow } from "../../lib/now";
import { Failure } from "../../parts/Failure";
import { useAction } from "../../parts/useAction";
import { Backfills } from "./Backfills";
import { errorOf } from "./errorOf";
import { InstantInput } from "./InstantInput";
import { ParamsInput } from "./ParamsInput";
import type { DialogProperties } from "./PauseDialog";
import { useSettled } from "./useSettled";
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
  const change = (part: Partial<Wish>) => setWish({ ...wish, ...part });
  const create = async () => {
    setErrors([]);
    const { from, until, max_concurrent, isOther, params } = wish;
    const body = { from, until, max_concurrent, ...(isOther ? { params } : {}) };
    await run(() => client.POST("/tasks/{id}/backfills", { params: { path: { id: task.id } }, body }), {
      done: t("backfill.done"),
      failed: (error) => {
        if (!(error instanceof Problem) || !error.errors.some(({ field }) => Object.hasOwn(wish, field))) return false;
        setErrors(error.errors);
        return true;
      },
    });
  };
  const isPossible = wish.from > 0 && wish.until > wish.from;
  return (
    <Form layout="vertical" onFinish={() => void create()}>
      <Form.Item label={t("backfill.from")} htmlFor="backfill-from" {...errorOf(errors, "from")}>
        <InstantInput id="backfill-from" zone={task.time_zone} value={wish.from} onChange={(from) => change({ from })} />
      </Form.Item>
      <Form.Item label={t("backfill.until")} extra={t("backfill.until_help")} htmlFor="backfill-until" {...errorOf(errors, "until")}>
        <InstantInput id="backfill-until" zone={task.time_zone} value={wish.until} onChange={(until) => change({ until })} />
      </Form.Item>
      <Counted task={task} from={wish.from} until={wish.until} />
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
    </Form>
  );
}

/** How many fires lie in the range, as the definition names them now. */
function Counted({ task, from, until }: { task: Schema<"Task">; from: number; until: number }) {
  const { t } = useTranslation("tasks");
  const asked = useSettled(from, SETTLE_MS);
  // The first instant belongs to the range, and "after" does not name itself.
  const query = { after: asked - 1, count: MAX_COUNTED };
  const { data, error } = $api.useQuery("get", "/tasks/{id}/preview", { params: { path: { id: task.id }, query } }, { enabled: asked > 0, staleTime: 60_000 });
  if (from === 0 || until === 0) return null;
  if (until <= from) return <Alert type="warning" showIcon title={t("backfill.backwards")} className="form-note" />;
  if (data === undefined) return <Failure error={error} />;
  const { fires, isAll } = countFires(data.items, until);
  return (
    <Alert
      type={fires === 0 ? "warning" : "info"}
      showIcon
      className="form-note"
      title={fires === 0 ? t("backfill.no_fires") : t(isAll ? "backfill.fires" : "backfill.fires_at_least", { count: fires })}
    />
  );
}

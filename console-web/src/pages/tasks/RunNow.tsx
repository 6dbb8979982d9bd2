/** Runs a task by hand: at once or later, with its parameters or others. */
import { Alert, Checkbox, Form, Modal, Radio, Select, Space } from "antd";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { client, type Schema } from "../../api/client";
import { newKey } from "../../lib/once";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { useAction } from "../../parts/useAction";
import { DurationInput } from "./DurationInput";
import { InstantInput } from "./InstantInput";
import { ParamsInput } from "./ParamsInput";
import type { DialogProperties } from "./PauseDialog";
import { PRIORITIES } from "./priorities";

interface Wish {
  when: "now" | "delay" | "at";
  delay_ms: number;
  at: number;
  isOther: boolean;
  params: string;
  /** Absent: the task's own. */
  priority?: number;
}

/** What the API is asked for; the task's own values are left to the task. */
function inputOf(wish: Wish, task: Schema<"Task">, key: string): Schema<"RunInput"> {
  return {
    at: wish.when === "at" ? wish.at : null,
    delay_ms: wish.when === "delay" ? wish.delay_ms : null,
    priority: wish.priority === undefined || wish.priority === task.priority ? null : wish.priority,
    idempotency_key: key,
    ...(wish.isOther ? { params: wish.params } : {}),
  };
}

function wishOf(task: Schema<"Task">): Wish {
  return { when: "now", delay_ms: 60_000, at: 0, isOther: false, params: task.params };
}

export function RunNow({ task, open, onClose }: DialogProperties) {
  const { t: common } = useTranslation();
  const { t } = useTranslation("tasks");
  const [started, setStarted] = useState<Schema<"Started">>();
  const { busy, run } = useAction();
  const [wish, setWish] = useState(() => wishOf(task));
  // A double click, or a second try after a lost answer, starts one run.
  const [key, setKey] = useState(newKey);
  const start = async () => {
    await run(
      async () => (await client.POST("/tasks/{id}/run", { params: { path: { id: task.id } }, body: inputOf(wish, task, key) })).data,
      { done: t("run.done"), then: setStarted },
    );
  };
  // Each run is a wish of its own.
  const forget = () => {
    setStarted(undefined);
    setKey(newKey());
    setWish(wishOf(task));
  };
  const [wasOpen, setWasOpen] = useState(open);
  if (wasOpen !== open) {
    setWasOpen(open);
    // It begins with the task as it is now.
    if (open) forget();
  }
  return (
    <Modal
      open={open}
      title={t("run.title", { name: task.name })}
      okText={t(started === undefined ? "run.button" : "run.again")}
      cancelText={common(started === undefined ? "cancel" : "close")}
      okButtonProps={{ loading: busy, disabled: wish.when === "at" && wish.at === 0 }}
      onOk={() => (started === undefined ? void start() : forget())}
      onCancel={onClose}
      destroyOnHidden
    >
      {started === undefined ? (
        <RunForm wish={wish} priority={task.priority} change={(part) => setWish({ ...wish, ...part })} onFinish={() => void start()} />
      ) : (
        <RunStarted started={started} />
      )}
    </Modal>
  );
}

function RunStarted({ started }: { started: Schema<"Started"> }) {
  const { t } = useTranslation("tasks");
  const link = useLink();
  return (
    <Alert
      type="success"
      showIcon
      title={t("run.done")}
      description={
        <>
          {t("run.starts")} <Moment at={started.fire_time} />. <Link to={link(`/logs/${started.log}`)}>{t("run.log", { id: started.log })}</Link>
        </>
      }
    />
  );
}

interface FormProperties {
  wish: Wish;
  /** The task's own. */
  priority: number;
  change: (part: Partial<Wish>) => void;
  onFinish: () => void;
}

function RunForm({ wish, priority, change, onFinish }: FormProperties) {
  const { t } = useTranslation("tasks");
  const id = useId();
  return (
    <Form layout="vertical" onFinish={onFinish}>
      <Form.Item label={t("run.when")}>
        <Radio.Group value={wish.when} onChange={(event) => change({ when: event.target.value as Wish["when"] })} aria-label={t("run.when")}>
          <Space orientation="vertical">
            <Radio value="now">{t("run.now")}</Radio>
            <Radio value="delay">{t("run.delay")}</Radio>
            <Radio value="at">{t("run.at")}</Radio>
          </Space>
        </Radio.Group>
      </Form.Item>
      {wish.when === "delay" && (
        <Form.Item label={t("run.delay_label")} extra={t("run.delay_help")} htmlFor={`${id}delay`}>
          <DurationInput id={`${id}delay`} label={t("run.delay_label")} value={wish.delay_ms} onChange={(delay_ms) => change({ delay_ms })} />
        </Form.Item>
      )}
      {wish.when === "at" && (
        <Form.Item label={t("run.at_label")} extra={wish.at === 0 ? t("run.at_missing") : undefined} htmlFor={`${id}at`}>
          <InstantInput id={`${id}at`} value={wish.at} onChange={(at) => change({ at })} />
        </Form.Item>
      )}
      <Form.Item label={t("fields.label.params")} htmlFor={`${id}params`}>
        <Checkbox checked={wish.isOther} onChange={(event) => change({ isOther: event.target.checked })}>
          {t("run.other_params")}
        </Checkbox>
        <ParamsInput id={`${id}params`} disabled={!wish.isOther} value={wish.params} onChange={(params) => change({ params })} />
      </Form.Item>
      <Form.Item label={t("fields.label.priority")} extra={t("fields.help.priority")} htmlFor={`${id}priority`}>
        <Select id={`${id}priority`} options={PRIORITIES} value={wish.priority ?? priority} onChange={(chosen: number) => change({ priority: chosen })} className="short-select" />
      </Form.Item>
    </Form>
  );
}

/** Disables and weighs an executor. */
import { Button, Flex, Form, Input, InputNumber } from "antd";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";

type Executor = Schema<"Executor">;

function put(executor: Executor, body: Schema<"ExecutorPatch">) {
  return client.PATCH("/executors/{id}", { params: { path: { id: executor.id }, header: ifMatch(executor.revision) }, body });
}

export function RoutingForm({ executor }: { executor: Executor }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { busy, run } = useAction();
  const save = (body: { weight: number }) => void run(() => put(executor, body), { done: t("saved") });
  return (
    <Flex vertical gap="middle">
      <Form layout="vertical" initialValues={{ weight: executor.weight }} onFinish={save}>
        <Form.Item label={own("executors.weight_label")} extra={own("executors.weight_help")}>
          <Flex gap="small">
            <Form.Item name="weight" noStyle rules={[{ required: true }]}>
              <InputNumber aria-label={own("executors.weight_label")} min={0} max={100} precision={0} className="number-field" />
            </Form.Item>
            <Button htmlType="submit" loading={busy}>
              {t("save")}
            </Button>
          </Flex>
        </Form.Item>
      </Form>
      {executor.disabled ? <Enable executor={executor} /> : <Disable executor={executor} />}
    </Flex>
  );
}

function Enable({ executor }: { executor: Executor }) {
  const { t: own } = useTranslation("executors");
  const { busy, run } = useAction();
  // The note said why it was disabled.
  const enable = () => void run(() => put(executor, { disabled: false, note: "" }), { done: own("executors.enabled_done") });
  return (
    <div>
      <Button type="primary" loading={busy} onClick={enable}>
        {own("executors.enable")}
      </Button>
    </div>
  );
}

function Disable({ executor }: { executor: Executor }) {
  const { t: own } = useTranslation("executors");
  const { run } = useAction();
  const [note, setNote] = useState("");
  const id = useId();
  const disable = () => run(() => put(executor, { disabled: true, note: note.trim() }), { done: own("executors.disabled_done") });
  return (
    <div>
      <Confirm
        label={own("executors.disable")}
        danger={false}
        question={own("executors.disable_question", { address: executor.address })}
        consequence={own("executors.disable_consequence")}
        onConfirm={disable}
      >
        <label htmlFor={id}>
          {own("executors.disable_note")}
          <Input id={id} value={note} maxLength={1_000} onChange={(event) => setNote(event.target.value)} />
        </label>
      </Confirm>
    </div>
  );
}

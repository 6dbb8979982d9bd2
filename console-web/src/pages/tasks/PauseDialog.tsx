/** Pauses a task, with a note that says why. */
import { Form, Input, Modal, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useAction } from "../../parts/useAction";
import { useTold } from "./useTold";

export interface DialogProperties {
  task: Schema<"Task">;
  open: boolean;
  onClose: () => void;
}

export function PauseDialog({ task, open, onClose }: DialogProperties) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const { busy, run } = useAction();
  const told = useTold();
  const [note, setNote] = useState("");
  const pause = async () => {
    const done = await run(
      async () => (await client.POST("/tasks/{id}/pause", { params: { path: { id: task.id } }, body: { note: note.trim() } })).data,
      { done: t("pause.done", { name: task.name }), then: (changed) => changed && told(changed) },
    );
    if (done) onClose();
  };
  return (
    <Modal
      open={open}
      title={t("pause.question", { name: task.name })}
      okText={t("pause.button")}
      cancelText={common("cancel")}
      okButtonProps={{ disabled: note.trim() === "", loading: busy }}
      onOk={() => void pause()}
      onCancel={onClose}
      destroyOnHidden
      afterClose={() => setNote("")}
    >
      <Typography.Paragraph>{t("pause.consequence")}</Typography.Paragraph>
      <Form layout="vertical" onFinish={() => void pause()}>
        <Form.Item label={t("pause.note")} extra={t("pause.note_help")} htmlFor="pause-note" required>
          <Input.TextArea id="pause-note" value={note} maxLength={1000} className="grows" rows={2} onChange={(event) => setNote(event.target.value)} />
        </Form.Item>
      </Form>
    </Modal>
  );
}

/** A button for what cannot be undone: it asks first, and for the worst the name must be typed. */
import { Button, Flex, Input, Modal, Typography, type ButtonProps } from "antd";
import { useId, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

interface Question {
  /** What the button that does it says. */
  label: ReactNode;
  /** The question. */
  question: string;
  /** What will happen. */
  consequence?: ReactNode;
  /** Must be typed, letter by letter, before it can be confirmed. */
  typed?: string;
  /** Whether it cannot be undone; it is red then, and says so. */
  danger?: boolean;
  /** Does it; the question stays open until it is done, and when it gives `false`. */
  onConfirm: () => Promise<boolean>;
  /** Further input that the question asks for. */
  children?: ReactNode;
}

/** The question alone, for where a menu opens it. */
export function ConfirmModal({ open, onClose, label, question, consequence, typed, danger = true, onConfirm, children }: Question & { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const id = useId();
  const confirm = async () => {
    setBusy(true);
    const done = await onConfirm();
    setBusy(false);
    if (done) onClose();
  };
  return (
    <Modal
      open={open}
      title={question}
      okText={label}
      cancelText={t("cancel")}
      okButtonProps={{ danger, disabled: typed !== undefined && text !== typed, loading: busy }}
      onOk={() => void confirm()}
      onCancel={onClose}
      afterClose={() => setText("")}
      destroyOnHidden
    >
      <Flex vertical gap="small">
        {consequence}
        {children}
        {danger && <Typography.Text type="secondary">{t("cannot_be_undone")}</Typography.Text>}
        {typed !== undefined && (
          <label htmlFor={id}>
            {t("type_to_confirm", { name: typed })}
            <Input id={id} value={text} autoComplete="off" onChange={(event) => setText(event.target.value)} />
          </label>
        )}
      </Flex>
    </Modal>
  );
}

export function Confirm({ button, ...question }: Question & { button?: ButtonProps }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button danger={question.danger ?? true} {...button} onClick={() => setOpen(true)}>
        {question.label}
      </Button>
      <ConfirmModal {...question} open={open} onClose={() => setOpen(false)} />
    </>
  );
}

/** A password, token or key that is shown once: it closes only when the user confirms having stored it. */
import { Alert, Button, Checkbox, Flex, Input, Modal, Space } from "antd";
import { useId, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { CopyButton } from "./CopyButton";

interface Properties {
  /** Says what it is. */
  title: string;
  /** The secret itself; absent: nothing is shown. */
  value: string | undefined;
  onClose: () => void;
  /** What to do with it. */
  children?: ReactNode;
}

export function Secret({ title, value, onClose, children }: Properties) {
  return (
    <Modal open={value !== undefined} title={title} width={640} footer={null} closable={false} keyboard={false} mask={{ closable: false }} destroyOnHidden>
      {value !== undefined && (
        <Shown title={title} value={value} onClose={onClose}>
          {children}
        </Shown>
      )}
    </Modal>
  );
}

function Shown({ title, value, onClose, children }: Properties & { value: string }) {
  const { t } = useTranslation("people");
  const [kept, setKept] = useState(false);
  const id = useId();
  return (
    <Flex vertical gap="middle">
      <Alert type="warning" showIcon title={t("secret.once")} description={t("secret.why")} />
      <Space.Compact block>
        <Input id={id} aria-label={title} className="mono" readOnly value={value} onFocus={(event) => event.target.select()} />
        <CopyButton text={value} />
      </Space.Compact>
      {children}
      <Flex justify="space-between" align="center" gap="small" wrap>
        <Checkbox checked={kept} onChange={(event) => setKept(event.target.checked)}>
          {t("secret.kept")}
        </Checkbox>
        <Button type="primary" disabled={!kept} onClick={onClose}>
          {t("secret.close")}
        </Button>
      </Flex>
    </Flex>
  );
}

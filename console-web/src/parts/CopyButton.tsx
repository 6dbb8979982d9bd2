/** A button that copies a text and says so. */
import { CheckOutlined, CopyOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { copyText } from "../lib/copy";

interface Properties {
  text: string;
  /** What is copied, for those who hear the page; absent: the button says "Copy" itself. */
  label?: string;
  onCopied?: () => void;
}

export function CopyButton({ text, label, onCopied }: Properties) {
  const { t } = useTranslation();
  const people = useTranslation("people");
  const { message } = App.useApp();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    const done = await copyText(text);
    setCopied(done);
    if (done) onCopied?.();
    else message.warning(people.t("secret.not_copied"));
  };
  const icon = copied ? <CheckOutlined aria-hidden /> : <CopyOutlined aria-hidden />;
  if (label !== undefined) return <Button size="small" type="text" icon={icon} aria-label={label} onClick={() => void copy()} />;
  return (
    <Button icon={icon} onClick={() => void copy()}>
      {t(copied ? "copied" : "copy")}
    </Button>
  );
}

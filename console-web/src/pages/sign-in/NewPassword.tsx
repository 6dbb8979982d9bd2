import { App, Button, Form, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client } from "../../api/client";
import type { Me } from "../../api/session";
import { Failure } from "../../parts/Failure";
import { Gate } from "./Gate";
import { PasswordFields, showRefused, type Passwords } from "./PasswordFields";

export default function NewPassword({ me, onChanged }: { me: Me; onChanged: () => void }) {
  const { t } = useTranslation("people");
  const { message } = App.useApp();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [form] = Form.useForm<Passwords>();
  const change = async ({ current, new: chosen }: Passwords) => {
    setBusy(true);
    setError(null);
    try {
      await client.PUT("/account/password", { body: { current, new: chosen } });
      message.success(t("new_password.done"));
      onChanged();
    } catch (failure) {
      setError(showRefused(form, failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Gate title={t("new_password.title")}>
      <Typography.Paragraph>{t("new_password.why")}</Typography.Paragraph>
      <Failure error={error} />
      <Form<Passwords> form={form} layout="vertical" requiredMark={false} onFinish={(passwords) => void change(passwords)}>
        {/* For password managers. */}
        <input type="text" name="username" autoComplete="username" value={me.name} readOnly hidden />
        <PasswordFields />
        <Button type="primary" htmlType="submit" block loading={busy}>
          {t("new_password.submit")}
        </Button>
      </Form>
    </Gate>
  );
}

/** Another password of my own. */
import { Button, Flex, Form, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client } from "../../api/client";
import { useSession } from "../../api/session";
import { Failure } from "../../parts/Failure";
import { useAction } from "../../parts/useAction";
import { PasswordFields, showRefused, type Passwords } from "../sign-in/PasswordFields";

export function MyPassword() {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const [form] = Form.useForm<Passwords>();
  const { busy, run } = useAction();
  const [error, setError] = useState<unknown>(null);
  const change = async ({ current, new: chosen }: Passwords) => {
    setError(null);
    const failed = (failure: unknown) => {
      setError(showRefused(form, failure));
      return true;
    };
    const done = await run(() => client.PUT("/account/password", { body: { current, new: chosen } }), { done: t("new_password.done"), failed });
    if (done) form.resetFields();
  };
  return (
    <Flex vertical gap="middle" className="narrow">
      <Typography.Text>{t("account.password_text")}</Typography.Text>
      <Typography.Text type="secondary">{t("account.single_sign_on")}</Typography.Text>
      <Failure error={error} />
      <Form<Passwords> form={form} layout="vertical" requiredMark={false} onFinish={(passwords) => void change(passwords)}>
        {/* For password managers. */}
        <input type="text" name="username" autoComplete="username" value={me.name} readOnly hidden />
        <PasswordFields />
        <Button type="primary" htmlType="submit" loading={busy}>
          {t("new_password.submit")}
        </Button>
      </Form>
    </Flex>
  );
}

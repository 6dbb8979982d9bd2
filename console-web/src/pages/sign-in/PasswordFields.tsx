/** The three fields of a change of one's password. */
import { Form, Input } from "antd";
import { useTranslation } from "react-i18next";

export interface Passwords {
  current: string;
  next: string;
  again: string;
}

export function PasswordFields() {
  const { t } = useTranslation("people");
  return (
    <>
      <Form.Item name="current" label={t("new_password.current")} rules={[{ required: true }]}>
        <Input.Password autoComplete="current-password" />
      </Form.Item>
      <Form.Item name="next" label={t("new_password.next")} extra={t("new_password.rule")} rules={[{ required: true, min: 12 }]}>
        <Input.Password autoComplete="new-password" />
      </Form.Item>
      <Form.Item
        name="again"
        label={t("new_password.again")}
        dependencies={["next"]}
        rules={[
          { required: true },
          ({ getFieldValue }) => ({
            validator: (_, value) =>
              value === undefined || value === "" || value === getFieldValue("next")
                ? Promise.resolve()
                : Promise.reject(new Error(t("new_password.different"))),
          }),
        ]}
      >
        <Input.Password autoComplete="new-password" />
      </Form.Item>
    </>
  );
}

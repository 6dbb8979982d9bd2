/** The three fields of a change of one's password. */
import { Form, Input, type FormInstance } from "antd";
import { useTranslation } from "react-i18next";
import { errorsOf } from "../../lib/form-errors";

/** Named as the API names them, whose errors are shown at them. */
export interface Passwords {
  current: string;
  new: string;
  again: string;
}

/** Shows at the fields what was refused of them; gives what is left to be shown elsewhere. */
export function showRefused(form: FormInstance<Passwords>, failure: unknown): unknown {
  const { shown, rest } = errorsOf(failure, ["current", "new"]);
  for (const { name, errors } of shown) form.setFields([{ name: name === "current" ? "current" : "new", errors }]);
  return rest ? failure : null;
}

export function PasswordFields() {
  const { t } = useTranslation("people");
  return (
    <>
      <Form.Item name="current" label={t("new_password.current")} rules={[{ required: true }]}>
        <Input.Password autoComplete="current-password" />
      </Form.Item>
      <Form.Item name="new" label={t("new_password.next")} extra={t("new_password.rule")} rules={[{ required: true, min: 12 }]}>
        <Input.Password autoComplete="new-password" />
      </Form.Item>
      <Form.Item
        name="again"
        label={t("new_password.again")}
        dependencies={["new"]}
        rules={[
          { required: true },
          ({ getFieldValue }) => ({
            validator: (_, value) =>
              value === undefined || value === "" || value === getFieldValue("new")
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

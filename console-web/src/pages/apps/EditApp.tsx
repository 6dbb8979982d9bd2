/** The form that describes an app, bounds its runs and says how its executors sign. */
import { Alert, Form, Input, InputNumber, Radio } from "antd";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { FormModal } from "../../parts/FormModal";
import { SIGN_METHODS, signKey, type SignMethod } from "./sign";

interface Values {
  description: string;
  max_concurrent: number;
  sign_method: SignMethod;
}

export function EditApp({ app, onClose }: { app: Schema<"App">; onClose: () => void }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const save = (body: Values) => client.PATCH("/apps/{id}", { params: { path: { id: app.id }, header: ifMatch(app.revision) }, body });
  const chosen = SIGN_METHODS.find((method) => method === app.sign_method);
  return (
    <FormModal<Values, unknown>
      open
      title={own("apps.edit_title", { name: app.name })}
      submitLabel={t("save")}
      initial={{ description: app.description, max_concurrent: app.max_concurrent, sign_method: chosen }}
      submit={save}
      onClose={onClose}
      done={t("saved")}
    >
      <Form.Item name="description" label={t("description")} extra={own("apps.description_help")} rules={[{ max: 1_000 }]}>
        <Input.TextArea className="grows" rows={2} />
      </Form.Item>
      <Form.Item name="max_concurrent" label={own("apps.max_concurrent")} extra={own("apps.max_concurrent_help")} rules={[{ required: true }]}>
        <InputNumber min={0} max={1_000_000} precision={0} className="number-field" />
      </Form.Item>
      <Form.Item name="sign_method" label={own("apps.sign_method")}>
        <Radio.Group className="choices" options={SIGN_METHODS.map((method) => ({ value: method, label: <Method method={method} /> }))} />
      </Form.Item>
      <Form.Item noStyle dependencies={["sign_method"]}>
        {({ getFieldValue }) => {
          const method = getFieldValue("sign_method") as SignMethod;
          const demands = method !== "" && method !== app.sign_method;
          return demands && <Alert className="form-alert" type="warning" showIcon title={own("apps.sign_change_warning", { method })} />;
        }}
      </Form.Item>
    </FormModal>
  );
}

function Method({ method }: { method: SignMethod }) {
  const { t: own } = useTranslation("executors");
  const key = signKey(method);
  return (
    <>
      <strong>{method === "" ? own("apps.sign_any") : method}</strong>
      {key !== undefined && <div className="soft">{own(`apps.sign_help.${key}`)}</div>}
    </>
  );
}

/** The form of a token for executors of xxl-job: a new one, or the one that they have already. */
import { Form, Input, Radio, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { FormModal } from "../../parts/FormModal";

interface Properties {
  app: Schema<"App">;
  onCreated: (key: Schema<"CreatedKey">) => void;
  onClose: () => void;
}

interface Values {
  note: string;
  from: "made" | "theirs";
  secret: string;
}

export function NewToken({ app, onCreated, onClose }: Properties) {
  const { t } = useTranslation("xxljob");
  const { t: common } = useTranslation();
  const { t: own } = useTranslation("executors");
  const create = async ({ note, from, secret }: Values) => {
    const body = { note, kind: "token" as const, ...(from === "theirs" ? { secret: secret.trim() } : {}) };
    const { data } = await client.POST("/apps/{id}/keys", { params: { path: { id: app.id } }, body });
    return data;
  };
  return (
    <FormModal<Values, Schema<"CreatedKey"> | undefined>
      open
      title={t("token.create_title")}
      submitLabel={common("create")}
      initial={{ note: "", from: "made", secret: "" }}
      submit={create}
      then={(key) => {
        if (key !== undefined) onCreated(key);
      }}
      onClose={onClose}
    >
      {(form) => (
        <>
          <Typography.Paragraph>{t("token.create_help")}</Typography.Paragraph>
          <Form.Item name="from" label={t("token.which")}>
            <Radio.Group
              className="choices"
              options={[
                { value: "made", label: t("token.made") },
                { value: "theirs", label: t("token.theirs") },
              ]}
            />
          </Form.Item>
          <Form.Item noStyle dependencies={["from"]}>
            {() =>
              form.getFieldValue("from") === "theirs" && (
                <Form.Item name="secret" label={t("token.secret")} extra={t("token.secret_help")} rules={[{ required: true }]}>
                  <Input.Password className="mono" autoComplete="off" visibilityToggle />
                </Form.Item>
              )
            }
          </Form.Item>
          <Form.Item name="note" label={`${own("keys.note_label")} (${common("optional")})`} rules={[{ max: 160 }]}>
            <Input />
          </Form.Item>
        </>
      )}
    </FormModal>
  );
}

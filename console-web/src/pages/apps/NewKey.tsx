/** The form of a key beside those that there are. */
import { Form, Input, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { FormModal } from "../../parts/FormModal";

interface Properties {
  app: Schema<"App">;
  onCreated: (key: Schema<"CreatedKey">) => void;
  onClose: () => void;
}

export function NewKey({ app, onCreated, onClose }: Properties) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const create = async (body: { note: string }) => {
    const { data } = await client.POST("/apps/{id}/keys", { params: { path: { id: app.id } }, body });
    return data;
  };
  return (
    <FormModal
      open
      title={own("keys.create_title")}
      submitLabel={t("create")}
      initial={{ note: "" }}
      submit={create}
      then={(key) => {
        if (key !== undefined) onCreated(key);
      }}
      onClose={onClose}
    >
      <Typography.Paragraph>{own("keys.create_help")}</Typography.Paragraph>
      <Form.Item name="note" label={`${own("keys.note_label")} (${t("optional")})`} rules={[{ max: 160 }]}>
        <Input />
      </Form.Item>
    </FormModal>
  );
}

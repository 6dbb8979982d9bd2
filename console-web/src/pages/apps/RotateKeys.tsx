/** The form that replaces an app's keys by a new one. */
import { Alert, Form, Input, Select, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useNow } from "../../lib/now";
import { instant, viewerZone } from "../../lib/time";
import { FormModal } from "../../parts/FormModal";

interface Properties {
  app: Schema<"App">;
  onCreated: (key: Schema<"CreatedKey">) => void;
  onClose: () => void;
}

interface Values {
  overlap_ms: number;
  note: string;
}

const HOUR_MS = 3_600_000;
const OVERLAPS = { none: 0, hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS, month: 30 * 24 * HOUR_MS } as const;
const NAMES = ["none", "hour", "day", "week", "month"] as const;

export function RotateKeys({ app, onCreated, onClose }: Properties) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const rotate = async (body: Values) => {
    const { data } = await client.POST("/apps/{id}/keys/rotate", { params: { path: { id: app.id } }, body });
    return data;
  };
  return (
    <FormModal<Values, Schema<"CreatedKey"> | undefined>
      open
      title={own("keys.rotate_title")}
      submitLabel={own("keys.rotate")}
      initial={{ overlap_ms: OVERLAPS.day, note: "" }}
      submit={rotate}
      then={(key) => {
        if (key !== undefined) onCreated(key);
      }}
      onClose={onClose}
    >
      <Typography.Paragraph>{own("keys.rotate_help")}</Typography.Paragraph>
      <Form.Item name="overlap_ms" label={own("keys.overlap")}>
        <Select options={NAMES.map((name) => ({ value: OVERLAPS[name], label: own(`keys.overlaps.${name}`) }))} />
      </Form.Item>
      <Form.Item noStyle dependencies={["overlap_ms"]}>
        {({ getFieldValue }) => <Until overlap={getFieldValue("overlap_ms") as number} />}
      </Form.Item>
      <Form.Item name="note" label={`${own("keys.note_label")} (${t("optional")})`} rules={[{ max: 160 }]}>
        <Input />
      </Form.Item>
    </FormModal>
  );
}

function Until({ overlap }: { overlap: number }) {
  const { t: own } = useTranslation("executors");
  const now = useNow(10_000);
  const title = overlap === 0 ? own("keys.overlap_none") : own("keys.overlap_until", { at: instant(now + overlap, viewerZone(), "minute") });
  return <Alert className="form-alert" type={overlap === 0 ? "warning" : "info"} showIcon title={title} />;
}

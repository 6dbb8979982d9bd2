/** A new token, this once, and what an executor of xxl-job needs to use it. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { propertiesOf } from "../../lib/xxljob";
import { Secret } from "../../parts/Secret";
import { useNodeAddresses } from "./useNodeAddresses";

export function TokenOnce({ app, token, onClose }: { app: Schema<"App">; token: string; onClose: () => void }) {
  const { t } = useTranslation("xxljob");
  const properties = propertiesOf(useNodeAddresses(), app.name, token);
  return (
    <Secret title={t("token.secret_title")} value={token} onClose={onClose}>
      <div>
        <Typography.Title level={2} className="section-title">
          {t("token.properties")}
        </Typography.Title>
        <Typography.Paragraph type="secondary">{t("token.properties_help")}</Typography.Paragraph>
        <pre className="raw">{properties}</pre>
        <Typography.Text copyable={{ text: properties }}>{t("token.copy_properties")}</Typography.Text>
      </div>
      <Typography.Text type="secondary">{t("token.properties_nodes")}</Typography.Text>
    </Secret>
  );
}

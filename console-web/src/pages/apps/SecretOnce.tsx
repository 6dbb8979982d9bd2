/** A new key with its secret, this once, and what an executor needs to use it. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { environmentOf } from "../../lib/environment";
import { Secret } from "../../parts/Secret";
import { useNodeAddresses } from "./useNodeAddresses";

interface Properties {
  app: Pick<Schema<"App">, "tenant" | "name" | "sign_method">;
  secret: Schema<"CreatedKey">;
  onClose: () => void;
}

export function SecretOnce({ app, secret, onClose }: Properties) {
  const { t } = useTranslation("executors");
  const environment = environmentOf({ schedulers: useNodeAddresses(), tenant: app.tenant, app: app.name, key: secret, signMethod: app.sign_method });
  return (
    <Secret title={t("keys.secret_title")} value={secret.secret} onClose={onClose}>
      <div>
        {`${t("keys.id")}: `}
        <Typography.Text className="mono" copyable>
          {secret.id}
        </Typography.Text>
      </div>
      <div>
        <Typography.Title level={2} className="section-title">
          {t("keys.environment")}
        </Typography.Title>
        <Typography.Paragraph type="secondary">{t("keys.environment_help")}</Typography.Paragraph>
        <pre className="raw">{environment}</pre>
        <Typography.Text copyable={{ text: environment }}>{t("keys.copy_environment")}</Typography.Text>
      </div>
      <Typography.Text type="secondary">{t("keys.environment_nodes")}</Typography.Text>
    </Secret>
  );
}

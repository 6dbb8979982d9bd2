/** Where one goes from a tenant, and what can be done to it. */
import { Button, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";
import { useExplained } from "../../parts/useExplained";

export function TenantActions({ tenant, onEdit }: { tenant: Schema<"Tenant">; onEdit: () => void }) {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  const { may } = useSession();
  const link = useLink();
  const { run } = useAction();
  const explained = useExplained();
  const { name } = tenant;
  const scope = { tenant: name };
  const remove = () => run(() => client.DELETE("/tenants/{tenant}", { params: { path: { tenant: name } } }), { failed: explained });
  return (
    <Flex gap="small" align="center" wrap>
      {may("tasks.read", scope) && <Link to={link("/tasks", { tenant: name })}>{t("tenants.tasks")}</Link>}
      {may("quotas.read", scope) && <Link to={link("/quotas", { tenant: name })}>{t("tenants.quotas")}</Link>}
      {may("tenants.edit", scope) && (
        <Button size="small" onClick={onEdit}>
          {common.t("edit")}
        </Button>
      )}
      {may("tenants.delete", scope) && (
        <Confirm
          label={common.t("delete")}
          question={t("tenants.delete_question", { name })}
          consequence={t("tenants.delete_text")}
          typed={name}
          button={{ size: "small" }}
          onConfirm={remove}
        />
      )}
    </Flex>
  );
}

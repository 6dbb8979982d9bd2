import { Alert, Button } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, client, ifMatch } from "../../api/client";
import { useSession } from "../../api/session";
import { useTenant } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Waiting } from "../../parts/Waiting";
import { QuotaForm } from "./QuotaForm";
import { QuotaTable } from "./QuotaTable";
import { Meters } from "./Meters";

export default function Quotas() {
  const { tenant } = useTenant();
  return tenant === undefined ? <OfAll /> : <OfOne key={tenant} tenant={tenant} />;
}

function OfAll() {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  return (
    <Page title={common.t("pages.quotas")} subtitle={t("quotas.about_all")}>
      <QuotaTable />
    </Page>
  );
}

/** Use is no change: it is asked for, ms. */
const USE_MS = 10_000;

function OfOne({ tenant }: { tenant: string }) {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  const { may } = useSession();
  const [editing, setEditing] = useState(false);
  const params = { path: { tenant } };
  const mayEdit = may("quotas.edit", { tenant });
  const quotas = $api.useQuery("get", "/tenants/{tenant}/quotas", { params }, { refetchInterval: USE_MS });
  // Quotas are part of the tenant: they share its revision.
  const owner = $api.useQuery("get", "/tenants/{tenant}", { params }, { enabled: mayEdit && may("tenants.read", { tenant }) });
  const edit = mayEdit && quotas.data !== undefined && (
    <Button type="primary" disabled={owner.isLoading} onClick={() => setEditing(true)}>
      {t("quotas.edit")}
    </Button>
  );
  return (
    <Page title={`${common.t("pages.quotas")} · ${tenant}`} subtitle={t("quotas.about")} actions={edit}>
      <Failure error={quotas.error} again={() => void quotas.refetch()} />
      {quotas.isPending && <Waiting />}
      {quotas.data !== undefined && <Meters tenant={tenant} quotas={quotas.data} />}
      {!mayEdit && <Alert type="info" showIcon title={t("quotas.tenant_help")} />}
      {quotas.data !== undefined && (
        <QuotaForm
          open={editing}
          tenant={tenant}
          quotas={quotas.data}
          submit={(body) => client.PATCH("/tenants/{tenant}/quotas", { params: { path: { tenant }, header: owner.data && ifMatch(owner.data.revision) }, body })}
          onClose={() => setEditing(false)}
        />
      )}
    </Page>
  );
}

/** What a tenant has imported from other schedulers, what of it runs here by now, and how to go on. */
import { Alert, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { useSession } from "../../api/session";
import { groupsOf } from "../../lib/imports";
import { useFilters } from "../../lib/search";
import { useTenant } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Section } from "../../parts/Section";
import { TenantFirst } from "../../parts/TenantFirst";
import { Commands } from "./Commands";
import { Groups } from "./Groups";
import { ImportedTasks } from "./ImportedTasks";
import { useImports } from "./useImports";

export default function Imports() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("imports");
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const title = tenant === undefined ? t("pages.imports") : `${t("pages.imports")} · ${tenant}`;
  return (
    <Page title={title} subtitle={own("subtitle")}>
      <TenantFirst why={own("choose_tenant")} permission="tasks.read">
        {(chosen) =>
          mayWhole("tasks.read", chosen) ? <OfTenant key={chosen} tenant={chosen} /> : <Alert type="info" showIcon title={own("whole_only")} description={own("whole_only_help")} />
        }
      </TenantFirst>
    </Page>
  );
}

function OfTenant({ tenant }: { tenant: string }) {
  const { t } = useTranslation("imports");
  const { imported, isWhole, isCut, pages } = useImports(tenant);
  const { filters, set } = useFilters(["source", "app"]);
  const groups = groupsOf(imported);
  const chosen = groups.find(({ source, app }) => source === filters.source && app === filters.app);
  const choose = (group: { source: string; app: string } | undefined) => set({ source: group?.source, app: group?.app });
  const source = chosen?.source ?? groups[0]?.source;
  // What is not read to its end must not look like nothing.
  const isEmpty = isWhole && imported.length === 0;
  return (
    <Flex vertical gap="middle">
      <Failure error={pages.error} again={() => void pages.refetch()} />
      {isCut && <Alert type="warning" showIcon title={t("cut", { count: imported.length })} />}
      {!isEmpty && (
        <Section title={t("groups.title")} isKnown={isWhole} error={pages.error}>
          <Groups tenant={tenant} groups={groups} chosen={chosen} choose={choose} />
        </Section>
      )}
      <Commands key={`${source ?? ""}#${chosen?.app ?? ""}`} tenant={tenant} source={source} app={chosen?.app} isEmpty={isEmpty} />
      {!isEmpty && isWhole && <ImportedTasks pages={pages} imported={imported} chosen={chosen} />}
    </Flex>
  );
}

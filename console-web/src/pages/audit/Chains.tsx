/** The chains of entries and where they end, and how they are verified. */
import { Alert, Flex, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { ONLY_PLATFORM } from "../../lib/auditFilters";
import { useLink } from "../../lib/tenant";
import { CopyButton } from "../../parts/CopyButton";
import { BY_AFTER, List } from "../../parts/List";

type Chain = Schema<"AuditChain">;

const COMMAND = "carillon audit verify --head /mnt/elsewhere/carillon-heads.json";

function Explained() {
  const { t } = useTranslation("audit");
  const common = useTranslation();
  return (
    <Alert
      type="info"
      title={t("chain_about")}
      description={
        <Flex vertical gap="small">
          <span>{t("chain_verify")}</span>
          <Flex gap="small" align="center">
            <pre className="raw">{COMMAND}</pre>
            <CopyButton text={COMMAND} label={common.t("copy")} />
          </Flex>
          <span>{t("chain_head")}</span>
        </Flex>
      }
    />
  );
}

export function Chains() {
  const { t } = useTranslation("audit");
  const common = useTranslation();
  const link = useLink();
  const pages = $api.useInfiniteQuery("get", "/audit/chains", { params: { query: { limit: 100 } } }, BY_AFTER);
  const owner = ({ tenant, tenant_id }: Chain) => tenant ?? (tenant_id == null ? t("platform") : t("scope_deleted", { id: tenant_id }));
  const entries = (chain: Chain) => {
    const search = chain.tenant == null ? { tenant: undefined, scope: chain.tenant_id ?? ONLY_PLATFORM } : { tenant: chain.tenant };
    return <Link to={link("/audit", search)}>{t("chain_entries")}</Link>;
  };
  const end = ({ last_hash }: Chain) => (
    <span className="mono hash">
      {last_hash}
      {last_hash !== "" && <CopyButton text={last_hash} label={t("copy_hash")} />}
    </span>
  );
  const columns: NonNullable<TableProps<Chain>["columns"]> = [
    { title: t("chain_of"), key: "of", width: 180, render: (_, chain) => owner(chain) },
    { title: t("chain_length"), key: "length", width: 110, render: (_, { last_seq }) => <span className="number">{last_seq.toLocaleString("en-US")}</span> },
    { title: t("chain_end"), key: "end", width: 560, render: (_, chain) => end(chain) },
    { title: common.t("actions"), key: "entries", width: 120, render: (_, chain) => entries(chain) },
  ];
  return (
    <>
      <Explained />
      <List<Chain>
        label={t("chains")}
        pages={pages}
        rowKey={({ tenant_id }) => tenant_id ?? ONLY_PLATFORM}
        columns={columns}
        card={(chain) => (
          <Flex vertical gap="small">
            <strong>{owner(chain)}</strong>
            <span>
              {t("chain_length")}: {chain.last_seq.toLocaleString("en-US")}
            </span>
            {end(chain)}
            {entries(chain)}
          </Flex>
        )}
      />
    </>
  );
}

/** The scheduler processes: who is there, who is not, and what to do about it. */
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { Waiting } from "../../app/Console";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Advice } from "./Advice";
import { Leases } from "./Leases";
import { NodeTable } from "./NodeTable";
import { ThisNode } from "./ThisNode";

export default function Nodes() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = $api.useQuery("get", "/nodes");
  if (data !== undefined) return <Shown nodes={data} />;
  return <Page title={t("pages.nodes")}>{isPending ? <Waiting /> : <Failure error={error} again={() => void refetch()} />}</Page>;
}

function Shown({ nodes }: { nodes: Schema<"Nodes"> }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("nodes");
  const name = nodes.items.find((node) => node.id === nodes.this.id)?.name ?? nodes.this.id;
  return (
    <Page title={t("pages.nodes")} subtitle={own("nodes.subtitle", { name })}>
      <Advice nodes={nodes.items} />
      <NodeTable nodes={nodes.items} self={nodes.this.id} />
      <Leases leases={nodes.leases} />
      <ThisNode node={nodes.this} name={name} />
    </Page>
  );
}

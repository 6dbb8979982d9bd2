/** The scheduler processes: who is there, who is not, and what to do about it. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { Waiting } from "../../parts/Waiting";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Advice } from "./Advice";
import { Leases } from "./Leases";
import { NodeTable } from "./NodeTable";
import { ThisNode } from "./ThisNode";

/** Heartbeats and leases are renewed without a change: they are asked for, ms. */
const HEARTBEATS_MS = 5_000;

export default function Nodes() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = $api.useQuery("get", "/nodes", {}, { refetchInterval: HEARTBEATS_MS });
  const failure = <Failure error={error} again={() => void refetch()} />;
  if (data !== undefined) return <Shown nodes={data} failure={failure} />;
  return <Page title={t("pages.nodes")}>{isPending ? <Waiting /> : failure}</Page>;
}

function Shown({ nodes, failure }: { nodes: Schema<"Nodes">; failure: ReactNode }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("nodes");
  const name = nodes.items.find((node) => node.id === nodes.this.id)?.name ?? nodes.this.id;
  return (
    <Page title={t("pages.nodes")} subtitle={own("nodes.subtitle", { name })}>
      {failure}
      <Advice nodes={nodes.items} self={nodes.this} />
      <NodeTable nodes={nodes.items} self={nodes.this.id} />
      <Leases leases={nodes.leases} />
      <ThisNode node={nodes.this} name={name} />
    </Page>
  );
}

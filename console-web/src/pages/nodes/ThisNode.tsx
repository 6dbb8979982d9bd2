/** What the node that answers tells of itself. */
import { Card } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";

export function ThisNode({ node, name }: { node: Schema<"ThisNode">; name: string }) {
  const { t: own } = useTranslation("nodes");
  const { may } = useSession();
  const link = useLink();
  return (
    <Card
      size="small"
      title={<h2 className="card-title">{own("nodes.detail", { name })}</h2>}
      extra={may("settings.read") && <Link to={link("/settings")}>{own("nodes.settings")}</Link>}
    >
      <dl className="facts">
        <dt>{own("nodes.queue")}</dt>
        <dd>
          {node.queue_depth}
          <div className="soft">{own("nodes.queue_help")}</div>
        </dd>
        <dt>{own("nodes.cluster_time")}</dt>
        <dd>
          <Moment at={node.cluster_time} />
          <div className="soft">{own("nodes.cluster_time_help")}</div>
        </dd>
        <dt>{own("nodes.statements")}</dt>
        <dd className="number">{node.statements.toLocaleString("en-US")}</dd>
        <dt>{own("nodes.rule_version")}</dt>
        <dd>
          {node.rule_version}
          <div className="soft">{own("nodes.rule_version_help")}</div>
        </dd>
        <dt>{own("nodes.time_zones")}</dt>
        <dd>
          {node.time_zones}
          <div className="soft">{own("nodes.time_zones_help")}</div>
        </dd>
      </dl>
    </Card>
  );
}

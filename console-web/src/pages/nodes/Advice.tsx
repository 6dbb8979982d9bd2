/** What is worth a word about the nodes, and what to do. */
import { Alert } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { isClockOff, mixedVersions, nodeState } from "../../lib/nodes";
import { span } from "../../lib/time";
import { Moment } from "../../parts/Moment";

/** More is due than this node and its database carry: how far behind it is. */
function Overload({ overload }: { overload: Schema<"Overload"> }) {
  const { t: own } = useTranslation("nodes");
  const { since, claim_lag_ms: claiming, dispatch_lag_ms: dispatching, written_ahead_ms: ahead } = overload;
  const facts = own("nodes.overload_facts", { claiming: span(claiming), dispatching: span(dispatching) });
  const text = (
    <>
      <Moment at={since} />
      {` ${facts}${ahead == null ? "" : ` ${own("nodes.overload_ahead", { ahead: span(ahead) })}`} ${own("nodes.overload_text")}`}
    </>
  );
  return <Alert type="warning" showIcon title={own("nodes.overload_title")} description={text} />;
}

export function Advice({ nodes, self }: { nodes: Schema<"Node">[]; self: Schema<"ThisNode"> }) {
  const { t: own } = useTranslation("nodes");
  const away = nodes.filter((node) => nodeState(node) === "away").map((node) => node.name);
  const versions = mixedVersions(nodes);
  const off = nodes.filter((node) => node.online && isClockOff(node.clock_offset_ms)).map((node) => node.name);
  const isSingle = nodes.filter((node) => node.online).length === 1;
  return (
    <>
      {self.overload != null && <Overload overload={self.overload} />}
      {away.length > 0 && <Alert type="warning" showIcon title={own("nodes.away_title", { names: away.join(", ") })} description={own("nodes.away_text")} />}
      {off.length > 0 && <Alert type="warning" showIcon title={own("nodes.clock_title", { names: off.join(", ") })} description={own("nodes.clock_text")} />}
      {versions.length > 0 && <Alert type="info" showIcon title={own("nodes.versions_title", { versions: versions.join(", ") })} description={own("nodes.versions_text")} />}
      {isSingle && <Alert type="info" showIcon title={own("nodes.single_title")} description={own("nodes.single_text")} />}
    </>
  );
}

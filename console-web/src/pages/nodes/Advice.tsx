/** What is worth a word about the nodes, and what to do. */
import { Alert } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { isClockOff, mixedVersions, nodeState } from "../../lib/nodes";

export function Advice({ nodes }: { nodes: Schema<"Node">[] }) {
  const { t: own } = useTranslation("nodes");
  const away = nodes.filter((node) => nodeState(node) === "away").map((node) => node.name);
  const versions = mixedVersions(nodes);
  const off = nodes.filter((node) => node.online && isClockOff(node.clock_offset_ms)).map((node) => node.name);
  const isSingle = nodes.filter((node) => node.online).length === 1;
  return (
    <>
      {away.length > 0 && <Alert type="warning" showIcon title={own("nodes.away_title", { names: away.join(", ") })} description={own("nodes.away_text")} />}
      {off.length > 0 && <Alert type="warning" showIcon title={own("nodes.clock_title", { names: off.join(", ") })} description={own("nodes.clock_text")} />}
      {versions.length > 0 && <Alert type="info" showIcon title={own("nodes.versions_title", { versions: versions.join(", ") })} description={own("nodes.versions_text")} />}
      {isSingle && <Alert type="info" showIcon title={own("nodes.single_title")} description={own("nodes.single_text")} />}
    </>
  );
}

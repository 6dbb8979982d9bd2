/** The nodes as rows, or as cards on narrow screens. A cluster has few: no list of pages. */
import { Card, Flex, Grid, Tag, Tooltip, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { isClockOff, nodeState, type NodeState } from "../../lib/nodes";
import type { Tone } from "../../lib/states";
import { span } from "../../lib/time";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";
import { DataTable } from "../../parts/DataTable";

type Node = Schema<"Node">;

const TONES: Record<NodeState, Tone> = { online: "good", left: "idle", away: "bad" };

function State({ node }: { node: Node }) {
  const { t: own } = useTranslation("nodes");
  const state = nodeState(node);
  return <Word tone={TONES[state]}>{own(`nodes.${state}`)}</Word>;
}

function Name({ node, self }: { node: Node; self: string }) {
  const { t: own } = useTranslation("nodes");
  return (
    <>
      <strong>{node.name}</strong>
      {node.id === self && <Tag className="beside">{own("nodes.this_one")}</Tag>}
    </>
  );
}

/** How far its machine's clock is from the cluster's. */
function Clock({ node }: { node: Node }) {
  const { t: own } = useTranslation("nodes");
  const { clock_offset_ms: offset, clock_uncertainty_us: uncertain } = node;
  if (offset == null) return <>–</>;
  const text = `${offset > 0 ? "+" : ""}${span(offset)}`;
  const help = uncertain == null ? own("nodes.clock_help") : `${own("nodes.clock_help")} ± ${span(Math.ceil(uncertain / 1_000))}`;
  return <Tooltip title={help}>{isClockOff(offset) ? <span><Word tone="odd">{text}</Word></span> : <span className="number">{text}</span>}</Tooltip>;
}

export function NodeTable({ nodes, self }: { nodes: Node[]; self: string }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("nodes");
  const isWide = Grid.useBreakpoint().md !== false;
  const heard = (node: Node) => (node.left_at == null ? <Moment at={node.heartbeat_at} relative /> : <Moment at={node.left_at} relative />);
  const columns: TableProps<Node>["columns"] = [
    { title: t("name"), key: "name", width: 190, render: (_, node) => <Name node={node} self={self} /> },
    { title: own("nodes.state"), key: "state", width: 90, render: (_, node) => <State node={node} /> },
    { title: own("nodes.address"), dataIndex: "address", width: 190 },
    { title: own("nodes.version"), dataIndex: "version", width: 90 },
    { title: own("nodes.started"), key: "started", width: 160, render: (_, node) => <Moment at={node.started_at} exactness="minute" /> },
    { title: own("nodes.heartbeat"), key: "heartbeat", width: 130, render: (_, node) => heard(node) },
    { title: <Tooltip title={own("nodes.queue_help")}>{own("nodes.queue")}</Tooltip>, dataIndex: "queue_depth", width: 100, className: "number" },
    { title: own("nodes.clock"), key: "clock", width: 90, render: (_, node) => <Clock node={node} /> },
    { title: t("pages.executors"), dataIndex: "executors", width: 90, className: "number" },
    { title: t("id"), dataIndex: "id", width: 60 },
  ];
  if (isWide) return <DataTable<Node> size="middle" rowKey={(node) => node.id} columns={columns} dataSource={nodes} pagination={false} scroll={{ x: 1_140 }} aria-label={t("pages.nodes")} />;
  return (
    <Flex vertical gap="small" component="ul" className="cards">
      {nodes.map((node) => (
        <li key={node.id}>
          <Card size="small">
            <Flex gap="small" wrap>
              <Name node={node} self={self} />
              <State node={node} />
            </Flex>
            <dl className="facts">
              <dt>{own("nodes.address")}</dt>
              <dd>{node.address}</dd>
              <dt>{own("nodes.version")}</dt>
              <dd>{node.version}</dd>
              <dt>{own("nodes.heartbeat")}</dt>
              <dd>{heard(node)}</dd>
              <dt>{own("nodes.queue")}</dt>
              <dd>{node.queue_depth}</dd>
              <dt>{own("nodes.clock")}</dt>
              <dd>
                <Clock node={node} />
              </dd>
            </dl>
          </Card>
        </li>
      ))}
    </Flex>
  );
}

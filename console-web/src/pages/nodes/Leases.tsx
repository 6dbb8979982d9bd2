/** Which node does what only one at a time does. */
import { Card, Flex } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { isHeld } from "../../lib/nodes";
import { useNow } from "../../lib/now";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";

type Lease = Schema<"Lease">;

export function Leases({ leases }: { leases: Lease[] }) {
  const { t: own } = useTranslation("nodes");
  return (
    <Card size="small" title={<h2 className="card-title">{own("nodes.leases")}</h2>}>
      <p className="soft card-lead">{own("nodes.leases_help")}</p>
      <dl className="facts">
        {leases.map((lease) => (
          <OneLease key={lease.name} lease={lease} />
        ))}
      </dl>
    </Card>
  );
}

function OneLease({ lease }: { lease: Lease }) {
  const { t: own } = useTranslation("nodes");
  const now = useNow(1_000);
  const { name } = lease;
  const isKnown = name === "pregenerate" || name === "housekeeping" || name === "statistics";
  return (
    <>
      <dt>{isKnown ? own(`nodes.lease_names.${name}`) : name}</dt>
      <dd>
        <Flex gap="small" wrap align="center">
          {isHeld(lease, now) ? (
            <>
              <strong>{lease.node_name ?? lease.node}</strong>
              <span className="soft">
                {`${own("nodes.until")} `}
                <Moment at={lease.expires_at} />
              </span>
            </>
          ) : (
            <Word tone="odd">{own("nodes.lapsed")}</Word>
          )}
          <span className="soft" title={own("nodes.fence_help")}>{`${own("nodes.fence")} ${lease.fence}`}</span>
        </Flex>
      </dd>
    </>
  );
}

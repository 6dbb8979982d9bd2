/** One entry, unfolded: what changed, how and from where, and its place in the chain. */
import { Button, Descriptions, Flex } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { pretty } from "../../lib/auditDiff";
import { useLink } from "../../lib/tenant";
import { useTenantNames } from "../../lib/tenantNames";
import { CopyButton } from "../../parts/CopyButton";
import { Moment } from "../../parts/Moment";
import { Changes } from "./Changes";
import { useAuditWords } from "./words";

type AuditEntry = Schema<"AuditEntry">;

export function Entry({ entry }: { entry: AuditEntry }) {
  return (
    <Flex vertical gap="middle">
      <Changes before={entry.before} after={entry.after} />
      <Facts entry={entry} />
      <Further entry={entry} />
    </Flex>
  );
}

function Hash({ value }: { value: string }) {
  const { t } = useTranslation("audit");
  return (
    <span className="mono hash">
      {value}
      <CopyButton text={value} label={t("copy_hash")} />
    </span>
  );
}

function Facts({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation("audit");
  const words = useAuditWords();
  const { nameOf } = useTenantNames();
  const items = [
    { key: "how", label: t("how"), children: words.actor(entry.actor_kind) },
    { key: "address", label: t("address"), children: <span className="mono">{entry.address}</span> },
    { key: "at", label: t("at"), children: <Moment at={entry.at} exactness="millisecond" /> },
    { key: "action", label: t("action"), children: <span className="mono">{entry.action}</span> },
    { key: "tenant", label: t("tenant"), children: entry.tenant_id == null ? t("platform") : nameOf(entry.tenant_id) },
    { key: "target", label: t("target_id"), children: <span className="mono">{entry.target_id}</span> },
    { key: "id", label: t("entry_id"), children: <span className="mono">{entry.id}</span> },
    { key: "seq", label: t("place"), children: <span className="number">{entry.seq}</span> },
    { key: "hash", label: t("hash"), children: <Hash value={entry.hash} />, span: "filled" as const },
    { key: "previous", label: t("previous"), children: <Hash value={entry.previous} />, span: "filled" as const },
  ];
  return <Descriptions size="small" column={{ xs: 1, md: 2 }} items={items} />;
}

/** The raw texts, and where one looks next. */
function Further({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation("audit");
  const link = useLink();
  const [raw, setRaw] = useState(false);
  const texts = [entry.before, entry.after].filter((text): text is string => text != null);
  return (
    <Flex vertical gap="small">
      <Flex gap="middle" align="center" wrap>
        {texts.length > 0 && (
          <Button size="small" aria-expanded={raw} onClick={() => setRaw(!raw)}>
            {t(raw ? "hide_raw" : "raw")}
          </Button>
        )}
        {entry.target_id !== "" && <Link to={link("/audit", { kind: entry.target_kind, target: entry.target_id })}>{t("more_about")}</Link>}
        {entry.actor_id != null && <Link to={link("/audit", { actor: entry.actor_id })}>{t("more_by")}</Link>}
      </Flex>
      {raw && entry.before != null && <Raw label={t("before")} text={entry.before} />}
      {raw && entry.after != null && <Raw label={t("after")} text={entry.after} />}
    </Flex>
  );
}

function Raw({ label, text }: { label: string; text: string }) {
  return (
    <div>
      <strong>{label}</strong>
      <pre className="raw">{pretty(text)}</pre>
    </div>
  );
}

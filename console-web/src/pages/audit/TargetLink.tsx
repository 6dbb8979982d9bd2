/** What an entry is about: its kind and name, with a link where a page shows it. */
import { Flex } from "antd";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { pageOf } from "../../lib/auditTargets";
import { useLink } from "../../lib/tenant";
import { Word } from "../../parts/Tags";
import { useAuditWords } from "./words";

export function TargetLink({ entry }: { entry: Schema<"AuditEntry"> }) {
  const words = useAuditWords();
  const link = useLink();
  const page = pageOf(entry.target_kind, entry.target_id, entry.target);
  const name = entry.target === "" ? entry.target_id : entry.target;
  return (
    <Flex gap="small" align="center" wrap>
      <Word tone="idle">{words.kind(entry.target_kind)}</Word>
      {page === undefined ? <span>{name}</span> : <Link to={link(page.path, page.search)}>{name}</Link>}
    </Flex>
  );
}

/** What an entry changed, field by field: before and after. */
import { Button, Flex, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { auditDiff, saysNothing, type FieldChange } from "../../lib/auditDiff";

interface Properties {
  before: string | null | undefined;
  after: string | null | undefined;
}

export function Changes({ before, after }: Properties) {
  const { t } = useTranslation("audit");
  const [all, setAll] = useState(false);
  const changes = auditDiff(before, after);
  if (changes.length === 0) return <Typography.Text type="secondary">{t("no_change")}</Typography.Text>;
  const telling = changes.filter((change) => !saysNothing(change));
  const shown = all ? changes : telling;
  const left = changes.length - shown.length;
  const title = before == null ? "created" : after == null ? "removed" : "changes";
  return (
    <Flex vertical gap="small" align="start">
      <strong>{t(title)}</strong>
      {shown.length > 0 && <Fields changes={shown} hasBefore={before != null} hasAfter={after != null} />}
      {left > 0 && (
        <Button size="small" type="link" className="in-cell" onClick={() => setAll(true)}>
          {t("show_all", { count: left })}
        </Button>
      )}
    </Flex>
  );
}

function Fields({ changes, hasBefore, hasAfter }: { changes: FieldChange[]; hasBefore: boolean; hasAfter: boolean }) {
  const { t } = useTranslation("audit");
  return (
    <table className="changes">
      <thead>
        <tr>
          <th scope="col">{t("field")}</th>
          {hasBefore && <th scope="col">{t("before")}</th>}
          {hasAfter && <th scope="col">{t("after")}</th>}
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr key={change.field}>
            <th scope="row" className="mono">
              {change.field}
            </th>
            {hasBefore && (
              <td>
                <Value text={change.before} members={change.went} sign="went" />
              </td>
            )}
            {hasAfter && (
              <td>
                <Value text={change.after} members={change.came} sign="came" />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A value; of a list only what came or went, where that says it all. */
function Value({ text, members, sign }: { text: string | undefined; members: string[] | undefined; sign: "came" | "went" }) {
  const { t } = useTranslation("audit");
  if (members !== undefined && members.length > 0) {
    return (
      <span className={`change-${sign}`}>
        {t(sign)}
        {members.join(", ")}
      </span>
    );
  }
  if (members !== undefined) return <span className="change-none">–</span>;
  if (text === undefined) return <span className="change-none">{t("absent")}</span>;
  if (text === "") return <span className="change-none">{t("empty_value")}</span>;
  return <span className="change-text">{text}</span>;
}

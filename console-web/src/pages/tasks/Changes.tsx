/** What differs between two versions, field by field. */
import { Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import en from "../../i18n/en/fields";
import { lines, type Change } from "../../lib/diff";
import { FieldValue } from "./FieldValue";

type Labelled = keyof typeof en.label;

/** The name of a field; of one that this console does not know as the API calls it. */
export function useFieldLabel(): (field: string) => string {
  const { t } = useTranslation("tasks");
  const isKnown = (field: string): field is Labelled => Object.hasOwn(en.label, field);
  return (field) => (isKnown(field) ? t(`fields.label.${field}`) : field);
}

function isLong(value: unknown): value is string {
  return typeof value === "string" && value.includes("\n");
}

const SIGNS = { same: "  ", removed: "- ", added: "+ " };

function LongText({ before, after }: { before: string; after: string }) {
  return (
    <pre className="raw diff-text">
      {lines(before, after).map((line, index) => (
        // Lines have no other identity than their place.
        <div key={index} className={`diff-${line.is}`}>
          {SIGNS[line.is]}
          {line.text}
        </div>
      ))}
    </pre>
  );
}

function OneChange({ change: { field, before, after } }: { change: Change }) {
  const { t } = useTranslation("tasks");
  if (isLong(before) || isLong(after)) {
    return <LongText before={typeof before === "string" ? before : ""} after={typeof after === "string" ? after : ""} />;
  }
  return (
    <Flex gap="small" wrap align="baseline">
      <del className="diff-removed" aria-label={t("was")}>
        <FieldValue field={field} value={before} />
      </del>
      <span aria-hidden>→</span>
      <ins className="diff-added" aria-label={t("becomes")}>
        <FieldValue field={field} value={after} />
      </ins>
    </Flex>
  );
}

/** Says so when nothing differs. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const { t } = useTranslation("tasks");
  const labelOf = useFieldLabel();
  if (changes.length === 0) return <Typography.Text type="secondary">{t("no_difference")}</Typography.Text>;
  return (
    <dl className="change-list">
      {changes.map((change) => (
        <div key={change.field} className="change">
          <dt title={change.field}>{labelOf(change.field)}</dt>
          <dd>
            <OneChange change={change} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What a task is, field by field: what was decided is open, what is as it comes can be unfolded. */
import { Button, Descriptions, Flex } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { DEFAULTS, definitionOf, FIELDS, type Field } from "../../lib/definition";
import { useFieldLabel } from "../tasks/Changes";
import { FieldValue } from "../tasks/FieldValue";

/** Shown elsewhere on the page. */
const ELSEWHERE: readonly Field[] = ["name", "params", "description", "parents"];

export function Definition({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation("task");
  const label = useFieldLabel();
  const [all, setAll] = useState(false);
  const definition = definitionOf(task);
  const fields = FIELDS.filter((field) => !ELSEWHERE.includes(field));
  const decided = fields.filter((field) => JSON.stringify(definition[field]) !== JSON.stringify(DEFAULTS[field]));
  const shown = all ? fields : decided;
  return (
    <Flex vertical gap="middle">
      <Descriptions
        size="small"
        bordered
        column={{ xs: 1, md: 2 }}
        items={shown.map((field) => ({ key: field, label: label(field), children: <FieldValue field={field} value={definition[field]} /> }))}
      />
      {decided.length < fields.length && (
        <div>
          <Button type="link" onClick={() => setAll(!all)} aria-expanded={all}>
            {t(all ? "definition.fewer" : "definition.all", { count: fields.length - decided.length })}
          </Button>
        </div>
      )}
      {task.params !== "" && (
        <div>
          <div className="chart-title">{label("params")}</div>
          <pre className="raw">{task.params}</pre>
        </div>
      )}
    </Flex>
  );
}

/** The form of a task; what is typed is kept here until the node has taken it. */
import { Alert, Button, Card, Checkbox, Flex, Form } from "antd";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import type { Schema } from "../../api/client";
import { isField, withValue, type Definition } from "../../lib/definition";
import { fieldWords } from "../../i18n/fieldWords";
import { useLink } from "../../lib/tenant";
import { useLeaveGuard } from "../../parts/useLeaveGuard";
import { AppChoice } from "./AppChoice";
import { Conflict } from "./Conflict";
import type { Draft } from "./draft";
import { FirePreview } from "./FirePreview";
import { ParentsSection } from "./ParentsSection";
import { ScheduleSection } from "./ScheduleSection";
import { BusySection, FailSection, LateSection, LimitsSection, WhatSection, WhereSection } from "./Sections";
import { useSave } from "./useSave";

interface Properties {
  tenant: string;
  app: string;
  first: Definition;
  /** The task that is edited; absent: a new one. */
  task?: Schema<"Task">;
}

const SECTIONS: readonly { key: "what" | "when" | "where" | "busy" | "late" | "fails" | "after" | "limits"; Section: (properties: { draft: Draft }) => ReactNode }[] = [
  { key: "what", Section: WhatSection },
  { key: "when", Section: ScheduleSection },
  { key: "where", Section: WhereSection },
  { key: "busy", Section: BusySection },
  { key: "late", Section: LateSection },
  { key: "fails", Section: FailSection },
  { key: "after", Section: ParentsSection },
  { key: "limits", Section: LimitsSection },
];

export function EditorForm({ tenant, app, first, task }: Properties) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const link = useLink();
  const navigate = useNavigate();
  const [scope, setPlace] = useState({ tenant, app });
  const [values, setValues] = useState(first);
  const [isStarted, setStarted] = useState(true);
  const [begun] = useState({ tenant, app, values: first });
  const isDirty = JSON.stringify({ ...scope, values }) !== JSON.stringify(begun);
  const { question, release } = useLeaveGuard(isDirty);
  const { busy, errors, conflict, save, settle } = useSave(task, release);
  const draft: Draft = {
    ...scope,
    values,
    set: (name, value) => setValues((now) => ({ ...now, [name]: value })),
    choose: (name, word) => setValues((now) => withValue(now, name, word)),
    errors,
  };
  const back = link(task === undefined ? "/tasks" : `/tasks/${task.id}`);
  const others = errors.filter(({ field }) => !isField(field.replace(/[[.].*$/, "")));
  return (
    <Form layout="vertical" onFinish={() => void save({ ...scope, values, isStarted })} requiredMark>
      {question}
      {conflict !== undefined && task !== undefined && <Conflict conflict={conflict} typed={values} onLoad={setValues} onSettled={settle} />}
      <div className="editor">
        <Flex vertical gap="middle">
          {task === undefined && (
            <Section title={t("editor.where_to")}>
              <AppChoice scope={scope} onChange={setPlace} errors={errors} />
            </Section>
          )}
          {SECTIONS.map(({ key, Section: Fields }) => (
            <Section key={key} title={t(`editor.${key}`)}>
              <Fields draft={draft} />
            </Section>
          ))}
        </Flex>
        <div className="editor-side">
          <Card size="small">
            <FirePreview values={values} tenant={scope.tenant} />
          </Card>
          {errors.length > 0 && <Alert type="error" showIcon title={t("editor.errors")} description={others.map((error) => `${error.field}: ${fieldWords(error)}`).join("\n")} className="failure-detail" />}
          {task === undefined && (
            <Checkbox checked={isStarted} onChange={(event) => setStarted(event.target.checked)}>
              {t("editor.start_now")}
            </Checkbox>
          )}
          <Flex gap="small">
            <Button type="primary" htmlType="submit" loading={busy}>
              {task === undefined ? t("editor.create") : common("save")}
            </Button>
            <Button onClick={() => void navigate(back)}>{common("cancel")}</Button>
          </Flex>
        </div>
      </div>
    </Form>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card size="small" title={<h2 className="card-title">{title}</h2>}>
      {children}
    </Card>
  );
}

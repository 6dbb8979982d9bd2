/** Writes a calendar's next version. */
import { Alert, Button, Card, Flex, Form, Input } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSession } from "../../api/session";
import type { CalendarSpec } from "../../lib/calendar";
import { isStale, type OfField } from "../../lib/form-errors";
import { Failure } from "../../parts/Failure";
import { useLeaveGuard } from "../../parts/useLeaveGuard";
import { DayTools } from "./DayTools";
import { HoursField } from "./HoursField";
import { SpecView } from "./SpecView";
import { useDraft } from "./useDraft";
import { FIELDS, useSaving } from "./useSaving";
import { WeekdaysField } from "./WeekdaysField";
import { YearView } from "./YearView";

interface Properties {
  tenant: string;
  /** Absent: a new one, whose name is asked for. */
  name?: string;
  /** What the node has; for a new one, what to begin with. */
  base: CalendarSpec;
  /** Its version; 0 for a new one. */
  version: number;
  /** Begins with this instead. */
  start?: CalendarSpec;
  onSaved?: (name: string) => void;
}

/** How a field shows what the node refused of it. */
function refusal(errors: OfField[], name: (typeof FIELDS)[number]): { validateStatus?: "error"; help?: string } {
  const found = errors.find((each) => each.name === name);
  return found === undefined ? {} : { validateStatus: "error", help: found.errors.join("; ") };
}

export function CalendarEditor({ tenant, name, base, version, start, onSaved }: Properties) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const { mayWhole } = useSession();
  const draft = useDraft(base, version, start);
  const [newName, setNewName] = useState("");
  // A calendar's whole place is in the address: also another version, or another tenant, takes the draft's.
  const { question, release } = useLeaveGuard(draft.isChanged || newName !== "");
  const saving = useSaving(tenant, draft, (saved) => {
    if (name === undefined) release();
    onSaved?.(saved);
  });
  if (!mayWhole("calendars.edit", tenant)) return <SpecView spec={base} />;
  const isNew = name === undefined;
  const save = () => void saving.save(name ?? newName.trim());
  return (
    <Form layout="vertical" onFinish={save}>
      {question}
      <Flex vertical gap="middle">
        <Card size="small">
          {isNew && (
            <Form.Item label={own("editor.name")} extra={own("editor.name_help")} required htmlFor="calendar-name" {...refusal(saving.errors, "name")}>
              <Input id="calendar-name" value={newName} maxLength={128} autoComplete="off" onChange={(event) => setNewName(event.target.value)} />
            </Form.Item>
          )}
          <Form.Item label={own("editor.description")} htmlFor="calendar-description" {...refusal(saving.errors, "description")}>
            <Input
              id="calendar-description"
              value={draft.spec.description}
              maxLength={1_000}
              onChange={({ target }) => draft.change((spec) => ({ ...spec, description: target.value }))}
            />
          </Form.Item>
          <Form.Item label={own("editor.weekdays")} extra={own("editor.weekdays_help")} {...refusal(saving.errors, "excluded_weekdays")}>
            <WeekdaysField spec={draft.spec} onChange={draft.change} />
          </Form.Item>
          <Form.Item label={own("editor.hours")} extra={own("editor.hours_help")} className="last-item" {...refusal(saving.errors, "excluded_hours")}>
            <HoursField spec={draft.spec} onChange={draft.change} />
          </Form.Item>
        </Card>
        <Card size="small" title={<h2 className="card-title">{own("editor.year_view")}</h2>}>
          <Form.Item className="last-item" {...refusal(saving.errors, "excluded_days")}>
            <Form.Item className="last-item" {...refusal(saving.errors, "workdays")}>
              <YearView spec={draft.spec} onSet={draft.setDays} />
              <DayTools spec={draft.spec} onSet={draft.setDays} onChange={draft.change} />
            </Form.Item>
          </Form.Item>
        </Card>
        <Refused error={saving.error} isNew={isNew} onLoad={() => void saving.loadCurrent(name ?? newName.trim())} />
        <Flex gap="small" wrap align="center" className="save-bar">
          <Button type="primary" htmlType="submit" loading={saving.busy} disabled={isNew ? newName.trim() === "" : !draft.isChanged}>
            {isNew ? t("create") : t("save")}
          </Button>
          {!isNew && draft.isChanged && <Button onClick={draft.discard}>{own("editor.discard")}</Button>}
          <span className="soft">{[...(!isNew && draft.isChanged ? [own("editor.unsaved")] : []), ...(isNew ? [] : [own("editor.save_note")])].join(" ")}</span>
        </Flex>
      </Flex>
    </Form>
  );
}

/** Why it was not saved, where no field is to blame. */
function Refused({ error, isNew, onLoad }: { error: unknown; isNew: boolean; onLoad: () => void }) {
  const { t: own } = useTranslation("calendars");
  if (!isStale(error)) return <Failure error={error} />;
  if (isNew) return <Alert type="error" showIcon role="alert" title={own("editor.stale_new")} />;
  return (
    <Alert
      type="warning"
      showIcon
      role="alert"
      title={own("editor.stale_title")}
      description={own("editor.stale_text")}
      action={<Button onClick={onLoad}>{own("editor.load_current")}</Button>}
    />
  );
}

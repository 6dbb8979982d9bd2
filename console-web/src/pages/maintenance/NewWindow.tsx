/** The form of a window that begins now or later. */
import { DatePicker, Form, Input, Radio, Segmented, Select } from "antd";
import type { Dayjs } from "dayjs";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { planProblem } from "../../lib/maintenance";
import { clusterNow } from "../../lib/now";
import { viewerZone } from "../../lib/time";
import { FormModal } from "../../parts/FormModal";

interface Values {
  when: "now" | "later";
  duration: number;
  /** From, until; the picker shows the viewer's zone. Named as the API's field, for its errors. */
  ends_at: [Dayjs | null, Dayjs | null] | null;
  action: Schema<"WindowAction">;
  note: string;
}

const HOUR_MS = 3_600_000;
const DURATIONS = { half: HOUR_MS / 2, one: HOUR_MS, two: 2 * HOUR_MS, four: 4 * HOUR_MS, twelve: 12 * HOUR_MS, day: 24 * HOUR_MS } as const;
const NAMES = ["half", "one", "two", "four", "twelve", "day"] as const;
const ACTIONS = ["postpone", "skip"] as const;

function bodyOf({ when, duration, ends_at, action, note }: Values): Schema<"WindowInput"> {
  const from = ends_at?.[0]?.valueOf();
  const until = ends_at?.[1]?.valueOf();
  if (when === "now" || until === undefined) return { ends_at: clusterNow() + duration, action, note };
  return { starts_at: from, ends_at: until, action, note };
}

export function NewWindow({ tenant, onClose }: { tenant: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const add = (values: Values) => client.POST("/tenants/{tenant}/maintenance", { params: { path: { tenant } }, body: bodyOf(values) });
  return (
    <FormModal<Values, unknown>
      open
      title={own("maintenance.begin")}
      submitLabel={t("create")}
      initial={{ when: "now", duration: HOUR_MS, ends_at: null, action: "postpone", note: "" }}
      submit={add}
      onClose={onClose}
      done={own("maintenance.begun")}
    >
      <Form.Item name="when" label={own("maintenance.when")}>
        <Segmented
          options={[
            { value: "now", label: own("maintenance.now") },
            { value: "later", label: own("maintenance.later") },
          ]}
        />
      </Form.Item>
      <Form.Item noStyle dependencies={["when"]}>
        {({ getFieldValue }) => (getFieldValue("when") === "now" ? <Duration /> : <Range />)}
      </Form.Item>
      <Form.Item name="action" label={own("maintenance.action")}>
        <Radio.Group
          className="choices"
          options={ACTIONS.map((action) => ({
            value: action,
            label: (
              <>
                <strong>{own(`maintenance.actions.${action}`)}</strong>
                <div className="soft">{own(`maintenance.action_help.${action}`)}</div>
              </>
            ),
          }))}
        />
      </Form.Item>
      <Form.Item name="note" label={`${own("maintenance.note")} (${t("optional")})`} extra={own("maintenance.note_help")} rules={[{ max: 1_000 }]}>
        <Input.TextArea className="grows" rows={1} />
      </Form.Item>
    </FormModal>
  );
}

function Duration() {
  const { t: own } = useTranslation("calendars");
  return (
    <Form.Item name="duration" label={own("maintenance.duration")}>
      <Select options={NAMES.map((name) => ({ value: DURATIONS[name], label: own(`maintenance.durations.${name}`) }))} />
    </Form.Item>
  );
}

function Range() {
  const { t: own } = useTranslation("calendars");
  const check = (_: unknown, value: Values["ends_at"]) => {
    const problem = planProblem(value?.[0]?.valueOf(), value?.[1]?.valueOf(), clusterNow());
    return problem === undefined ? Promise.resolve() : Promise.reject(new Error(own(`maintenance.${problem}`)));
  };
  return (
    <Form.Item name="ends_at" label={own("maintenance.range")} extra={own("maintenance.zone", { zone: viewerZone() })} rules={[{ validator: check }]} required>
      <DatePicker.RangePicker className="wide-field" showTime={{ format: "HH:mm" }} format="YYYY-MM-DD HH:mm" />
    </Form.Item>
  );
}

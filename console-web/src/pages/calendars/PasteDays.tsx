/** Takes days out of pasted text, and shows first what was understood. */
import { Alert, Flex, Input, InputNumber, Modal, Radio, Typography } from "antd";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DayStep } from "../../lib/calendar";
import { clusterNow } from "../../lib/now";
import { readDays } from "../../lib/pasted-days";

export function PasteDays({ onTake, onClose }: { onTake: (steps: readonly DayStep[]) => void; onClose: () => void }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const [text, setText] = useState("");
  const [year, setYear] = useState(() => new Date(clusterNow()).getFullYear());
  const [otherwise, setOtherwise] = useState<"excluded" | "workdays">("excluded");
  const id = useId();
  const { excluded, workdays, wrong } = readDays(text, year, otherwise);
  const count = excluded.length + workdays.length;
  const take = () => {
    onTake([
      { days: excluded, works: false },
      { days: workdays, works: true },
    ]);
    onClose();
  };
  return (
    <Modal open title={own("editor.paste_title")} okText={own("editor.paste_take")} cancelText={t("cancel")} okButtonProps={{ disabled: count === 0 }} onOk={take} onCancel={onClose} width={640}>
      <Flex vertical gap="middle">
        <Typography.Text type="secondary">{own("editor.paste_help")}</Typography.Text>
        <Input.TextArea
          aria-label={own("editor.paste_title")}
          className="mono grows" rows={5}
          placeholder={own("editor.paste_example")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Typography.Text type="secondary">{own("editor.paste_forms")}</Typography.Text>
        <Flex gap="small" align="center" wrap>
          <label htmlFor={id}>{own("editor.paste_year")}</label>
          <InputNumber id={id} min={1970} max={2199} precision={0} value={year} onChange={(value) => setYear(value ?? year)} />
        </Flex>
        <Flex gap="small" align="center" wrap>
          <span>{own("editor.paste_otherwise")}</span>
          <Radio.Group
            aria-label={own("editor.paste_otherwise")}
            value={otherwise}
            onChange={(event) => setOtherwise(event.target.value === "workdays" ? "workdays" : "excluded")}
            options={[
              { value: "excluded", label: own("editor.paste_off") },
              { value: "workdays", label: own("editor.paste_work") },
            ]}
          />
        </Flex>
        <span role="status">{own("editor.paste_found", { excluded: excluded.length, workdays: workdays.length })}</span>
        {wrong.length > 0 && <Alert type="warning" showIcon title={own("editor.paste_wrong", { parts: wrong.join(" | ") })} />}
      </Flex>
    </Modal>
  );
}

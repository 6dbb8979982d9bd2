/** Parameters: a text, and whether it is JSON. */
import { Button, Flex, Input, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { kindOf, pretty } from "../../lib/params";

interface Properties {
  id?: string;
  label?: string;
  value?: string;
  onChange?: (text: string) => void;
  disabled?: boolean;
}

export function ParamsInput({ id, label, value = "", onChange, disabled = false }: Properties) {
  const { t } = useTranslation("tasks");
  const kind = kindOf(value);
  const formatted = pretty(value);
  return (
    <div>
      <Input.TextArea
        id={id}
        aria-label={label}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange?.(event.target.value)}
        className="mono grows" rows={3}
        spellCheck={false}
      />
      <Flex gap="small" align="center" justify="space-between">
        <Typography.Text type={kind === "broken" ? "warning" : "secondary"}>{t(`params_are.${kind}`)}</Typography.Text>
        {formatted !== undefined && formatted !== value && (
          <Button type="link" size="small" disabled={disabled} onClick={() => onChange?.(formatted)}>
            {t("format_json")}
          </Button>
        )}
      </Flex>
    </div>
  );
}

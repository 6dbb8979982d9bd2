/** Whether a user may sign in, and how. */
import { Flex } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { Word } from "../../parts/Tags";

export function UserStates({ user }: { user: Schema<"User"> }) {
  const { t } = useTranslation("people");
  return (
    <Flex gap={4} wrap>
      {user.disabled ? <Word tone="bad">{t("users.disabled")}</Word> : <Word tone="good">{t("users.enabled")}</Word>}
      {user.must_change_password && <Word tone="odd">{t("users.must_change")}</Word>}
      {user.subject != null && <Word tone="open">{t("users.single_sign_on")}</Word>}
      {!user.has_password && <Word tone="idle">{t("users.no_password")}</Word>}
    </Flex>
  );
}

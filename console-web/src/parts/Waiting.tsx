import { Flex, Spin } from "antd";
import { useTranslation } from "react-i18next";

/** Something is on its way. */
export function Waiting() {
  const { t } = useTranslation();
  return (
    <Flex justify="center" className="waiting" role="status" aria-label={t("loading")}>
      <Spin size="large" />
    </Flex>
  );
}

/** Light and dark, and the language of Ant Design's own texts. */
import { App as Antd, ConfigProvider, theme as antdTheme, type ThemeConfig } from "antd";
import en_US from "antd/locale/en_US";
import zh_CN from "antd/locale/zh_CN";
import { useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ThemeContext, type Appearance, type Theme } from "../lib/appearance";
import { nonce } from "./policy";

const KEPT = "carillon.appearance";
const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
const stillQuery = window.matchMedia("(prefers-reduced-motion: reduce)");

function kept(): Appearance {
  const word = localStorage.getItem(KEPT);
  return word === "light" || word === "dark" ? word : "system";
}

function useMatch(query: MediaQueryList): boolean {
  return useSyncExternalStore(
    (changed) => {
      query.addEventListener("change", changed);
      return () => query.removeEventListener("change", changed);
    },
    () => query.matches,
  );
}

/** Texts keep a contrast of 4.5 to 1 on every ground that they stand on. */
function design(isDark: boolean, isStill: boolean): ThemeConfig {
  // Without motion nothing waits for the end of a transition that styles.css takes away.
  const shared = { motion: !isStill, borderRadius: 6, fontSize: 14, wireframe: false };
  const light = {
    colorPrimary: "#2f54eb",
    colorPrimaryHover: "#2443c4",
    colorLink: "#2443c4",
    colorTextSecondary: "#4d5566",
    colorTextTertiary: "#5c6474",
    colorTextDescription: "#5c6474",
    colorTextPlaceholder: "#6b7280",
    colorTextQuaternary: "#6b7280",
    colorBgLayout: "#f4f6fa",
    colorError: "#c4242b",
    colorSuccess: "#217a3c",
    colorWarning: "#9a5b00",
    colorWarningBg: "#fdf2dc",
    colorErrorBg: "#fdeaea",
  };
  const dark = {
    colorPrimary: "#3d63f2",
    colorPrimaryHover: "#3254d8",
    colorLink: "#8fa8ff",
    colorTextSecondary: "#b8bfcc",
    colorTextTertiary: "#a3abba",
    colorTextDescription: "#a3abba",
    colorTextPlaceholder: "#949dad",
    colorTextQuaternary: "#949dad",
    colorBgBase: "#12151c",
    colorBgLayout: "#0d1016",
    colorError: "#ff7875",
    colorSuccess: "#5cc97b",
    colorWarning: "#e5a445",
    colorWarningBg: "#35280f",
    colorErrorBg: "#3a1719",
  };
  return {
    algorithm: isDark ? antdTheme.darkAlgorithm : antdTheme.defaultAlgorithm,
    token: { ...shared, ...(isDark ? dark : light) },
    components: {
      Menu: { itemHeight: 34, itemMarginBlock: 2, itemSelectedColor: isDark ? "#b9c8ff" : "#2443c4" },
      Tabs: { itemSelectedColor: isDark ? "#b9c8ff" : "#2443c4" },
      Table: { headerBg: isDark ? "#1b2029" : "#f4f6fa" },
    },
  };
}

export function ThemeProvider({ children }: { children: ReactNode }) {
  const { i18n } = useTranslation();
  const [appearance, setAppearance] = useState<Appearance>(kept);
  const systemIsDark = useMatch(darkQuery);
  const isDark = appearance === "system" ? systemIsDark : appearance === "dark";
  useEffect(() => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  }, [isDark]);
  const theme = useMemo<Theme>(
    () => ({
      appearance,
      isDark,
      choose: (chosen) => {
        localStorage.setItem(KEPT, chosen);
        setAppearance(chosen);
      },
    }),
    [appearance, isDark],
  );
  const isStill = useMatch(stillQuery);
  const config = useMemo(() => design(isDark, isStill), [isDark, isStill]);
  return (
    <ThemeContext value={theme}>
      <ConfigProvider
        theme={config}
        locale={i18n.language === "zh" ? zh_CN : en_US}
        csp={{ nonce: nonce() }}
        // Two Chinese characters in a button are a word like any other.
        button={{ autoInsertSpace: false }}
        virtual
      >
        {/* One word of what was done is enough: the next takes its place. */}
        <Antd message={{ maxCount: 1 }} notification={{ placement: "bottomRight" }}>{children}</Antd>
      </ConfigProvider>
    </ThemeContext>
  );
}

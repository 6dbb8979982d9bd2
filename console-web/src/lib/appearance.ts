/** Light or dark, as a person chose it. */
import { createContext, use } from "react";

/** What a person chose. */
export type Appearance = "light" | "dark" | "system";

export interface Theme {
  appearance: Appearance;
  isDark: boolean;
  choose: (appearance: Appearance) => void;
}

export const ThemeContext = createContext<Theme | null>(null);

/** The appearance, and how to change it. */
export function useAppearance(): Theme {
  const theme = use(ThemeContext);
  if (theme === null) throw new Error("useAppearance outside of ThemeProvider");
  return theme;
}

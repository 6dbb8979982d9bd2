import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// On a busy machine, too.
configure({ asyncUtilTimeout: 20_000 });
afterEach(() => cleanup());

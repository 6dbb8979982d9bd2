export default { title: "executors" } as const;

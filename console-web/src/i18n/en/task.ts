export default { title: "task" } as const;

export default { title: "tasks" } as const;

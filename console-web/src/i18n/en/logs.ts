export default { title: "logs" } as const;

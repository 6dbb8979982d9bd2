"""Edits a task and quotas with the clients that scripts/generated-clients has made, and checks the result."""

import json
import os
import urllib.request

BASE, TOKEN = os.environ["BASE"], os.environ["TOKEN"]


def call(method, path, body=None):
    """The API without any client: what is really stored."""
    request = urllib.request.Request(BASE + path, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", f"Bearer {TOKEN}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


call("POST", "/tenants", {"name": "retail"})
call("POST", "/apps", {"tenant": "retail", "name": "ledger"})
made = call("POST", "/tasks", {
    "tenant": "retail", "app": "ledger", "name": "close-books", "handler": "invoice", "cron": "0 0 3 * * ?",
    "time_zone": "Asia/Shanghai", "params": "{\"depth\":3}", "priority": 9, "timeout_ms": 60_000, "tags": ["gpu"],
    "retry_on": ["not_sent"], "delivery": "at_most_once", "block_strategy": "serial", "started": True,
})
ID = made["id"]
MOVES = {"revision", "updated_at", "written_until"}


def edited(who, field, value):
    """The task is unchanged except for that field."""
    global made
    now = call("GET", f"/tasks/{ID}")
    lost = {name: (made[name], now[name]) for name in made if name not in MOVES and made[name] != now[name]}
    assert lost == {field: (made[field], value)}, f"{who}: {lost}"
    made = now
    print(f"{who}: {field} is {value}, nothing else changed")


QUOTAS = {"max_tasks": 50, "max_fires_per_minute": 600, "max_concurrent": 20, "retain_days": 7}
call("PATCH", "/tenants/retail/quotas", QUOTAS)


def quota_edited(who, value):
    """The quotas are unchanged except for `max_tasks`."""
    now = call("GET", "/tenants/retail/quotas")
    assert {name: now[name] for name in QUOTAS} == {**QUOTAS, "max_tasks": value}, f"{who}: {now}"
    print(f"{who}: max_tasks is {value}, no other quota changed")


def with_openapi_python_client():
    from carillon_opc import AuthenticatedClient
    from carillon_opc.api.calendars import put_calendar
    from carillon_opc.api.tenants import edit_quotas
    from carillon_opc.api.schedules import preview_schedule
    from carillon_opc.api.tasks import edit_task, preview_task, replace_task, show_task
    from carillon_opc.models import Calendar, QuotasPatch, ScheduleQuestion, Task, TaskDefinition, TaskPatch

    client = AuthenticatedClient(base_url=BASE, token=TOKEN, raise_on_unexpected_status=True)
    edit_task.sync(ID, client=client, body=TaskPatch(max_retries=3))
    edited("openapi-python-client, PATCH", "max_retries", 3)
    task = show_task.sync(ID, client=client)
    assert isinstance(task, Task), task
    whole = TaskDefinition.from_dict(task.to_dict())
    whole.timeout_ms = 70_000
    replace_task.sync(ID, client=client, body=whole)
    edited("openapi-python-client, PUT", "timeout_ms", 70_000)
    edit_quotas.sync("retail", client=client, body=QuotasPatch(max_tasks=60))
    quota_edited("openapi-python-client, PATCH", 60)
    weekend = Calendar(excluded_weekdays=["sat"], excluded_days=[], workdays=[], excluded_hours=[], description="weekend")
    put_calendar.sync("retail", "weekend", client=client, body=weekend)
    assert call("GET", "/calendars/retail/weekend")["excluded_weekdays"] == ["sat"]
    fires = preview_task.sync(ID, client=client)
    assert fires.items[0].kind == "fires", fires
    fires = preview_schedule.sync(client=client, body=ScheduleQuestion(cron="0 0 3 * * ?"))
    assert fires.items[0].fire_time > 0, fires


def with_openapi_generator():
    import carillon_ogc
    from carillon_ogc.models import QuotasPatch, TaskDefinition, TaskPatch

    configuration = carillon_ogc.Configuration(host=BASE, access_token=TOKEN)
    with carillon_ogc.ApiClient(configuration) as client:
        tasks = carillon_ogc.TasksApi(client)
        tasks.edit_task(ID, task_patch=TaskPatch(max_retries=4))
        edited("openapi-generator, PATCH", "max_retries", 4)
        whole = TaskDefinition.from_dict(tasks.show_task(ID).to_dict())
        whole.timeout_ms = 80_000
        tasks.replace_task(ID, task_definition=whole)
        edited("openapi-generator, PUT", "timeout_ms", 80_000)
        carillon_ogc.TenantsApi(client).edit_quotas("retail", quotas_patch=QuotasPatch(max_tasks=70))
        quota_edited("openapi-generator, PATCH", 70)
        fires = tasks.preview_task(ID)
        assert fires.items[0].kind == "fires", fires


with_openapi_python_client()
with_openapi_generator()

class CustomRoutingStrategyBase:
    async def async_get_available_deployment(
        self, model, messages=None, input=None, specific_deployment=False, request_kwargs=None
    ):
        pass

    def get_available_deployment(self, model, messages=None, input=None, specific_deployment=False, request_kwargs=None):
        pass

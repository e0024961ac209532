// SPDX-License-Identifier: Apache-2.0
/* An addon of C++ that calls back what it is called with. Node-API, as far as that goes: it is the
 * same in all versions. */
#include <cstddef>

extern "C" {

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

int napi_get_cb_info(napi_env env, napi_callback_info info, size_t *nr, napi_value *values,
		     napi_value *self, void **data);
int napi_get_undefined(napi_env env, napi_value *ret);
int napi_call_function(napi_env env, napi_value self, napi_value function, size_t nr,
		       const napi_value *values, napi_value *ret);
int napi_create_function(napi_env env, const char *name, size_t len, napi_callback function,
			 void *data, napi_value *ret);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
napi_value napi_register_module_v1(napi_env env, napi_value exports);
}

namespace addon {

/* Which passes through a template and a virtual function, as bindings do. */
struct Caller {
	virtual ~Caller() = default;
	virtual napi_value call(napi_env env, napi_value function);
};

__attribute__((noinline)) napi_value Caller::call(napi_env env, napi_value function)
{
	napi_value self, result = nullptr;

	if (!napi_get_undefined(env, &self))
		napi_call_function(env, self, function, 0, nullptr, &result);
	return result;
}

template <typename T>
__attribute__((noinline)) napi_value call_back(napi_env env, napi_callback_info info)
{
	napi_value function;
	size_t nr = 1;
	T caller;
	Caller *volatile any = &caller;

	if (napi_get_cb_info(env, info, &nr, &function, nullptr, nullptr))
		return nullptr;
	napi_value result = any->call(env, function);
	asm volatile("" ::"r"(result)); /* no tail call */
	return result;
}

}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value function;

	if (!napi_create_function(env, "callBack", 8, addon::call_back<addon::Caller>, nullptr,
				  &function))
		napi_set_named_property(env, exports, "callBack", function);
	return exports;
}
